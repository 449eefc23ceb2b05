// What a simulation needs below Swift: which world a thread simulates, and the system's clocks and random numbers as that
// world has them.
#ifndef CWAYBILLSIMULATION_H
#define CWAYBILLSIMULATION_H

#include <stdint.h>

/// What the system was asked for by a thread that simulates, and does not give to it.
enum {
    WAYBILL_REFUSED_SOCKET = 1,
    WAYBILL_REFUSED_SLEEP = 2,
};

/// Whether threads of this process can simulate: on Linux with glibc (x86-64, aarch64), without a sanitizer, with Swift's
/// library linked dynamically, unless the environment variable WAYBILL_SIMULATION was "off" when the process began.
int waybill_simulation_is_available(void);

/// Makes the calling thread simulate a world, with its clocks at `now`, in nanoseconds since the world's beginning.
void waybill_simulation_enter(const void *world, int64_t now, uint64_t seed);

/// Ends the simulation of the calling thread.
void waybill_simulation_leave(void);

/// Adds to the number of worlds that are simulated in this process.
/// Returns it.
int waybill_simulation_count_worlds(int change);

/// Notes the number of a task that belongs to a world.
void waybill_simulation_note_task(uint64_t task);

/// Whether a task may belong to a world: no for certain, and without a lock, for most that belong to none.
int waybill_simulation_may_know_task(uint64_t task);

/// The world that the calling thread simulates; null where there is none.
const void *waybill_simulation_world(void);

/// Moves the clocks of the calling thread, which simulates.
void waybill_simulation_set_now(int64_t now);

/// What the calling thread was refused since the last call: bits of the values above.
uint32_t waybill_simulation_take_refused(void);

/// The true monotonic time in nanoseconds, for a thread that simulates, too.
int64_t waybill_simulation_real_now(void);

/// The number of the task that a job of Swift's belongs to.
uint64_t waybill_simulation_task(const void *job);

#endif
