/// What follows from each event in each state, where something follows.
extension ConnectionMachineTests {
    static let table = """
        ready: idle ready
          connect: connecting 1, begin -> connecting demand 1.1 then ready
          request: connecting 1, begin -> connecting demand 1.1 then ready
          requestOnly: throws notConnected
          subscribe: begin -> waiting subscription 1.0 until now
          disconnect: nothing -> idle disconnected
          shutDown: conclude for good -> shut down
          pause: nothing -> idle paused
        pausedIdle: idle paused
          connect: connecting 1, begin -> connecting demand 1.1 then ready
          request: connecting 1, begin -> connecting demand 1.1 then ready
          requestOnly: throws notConnected
          subscribe: begin -> paused subscription 1.0
          disconnect: nothing -> idle disconnected
          shutDown: conclude for good -> shut down
          resume: nothing -> idle ready
        left: idle disconnected
          connect: connecting 1, begin -> connecting demand 1.1 then ready
          request: throws notConnected
          requestOnly: throws notConnected
          shutDown: conclude for good -> shut down
        connecting: connecting demand 1.1 then ready
          connect: throws rejected
          request: join
          requestOnly: join
          subscribe: nothing -> connecting demand 1.1 wanted then ready
          turn: open 1
          turnLater: open 1
          accepted: connected -> connected
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          lost: nothing -> connecting demand 1.1 ended then ready
          closed: nothing -> connecting demand 1.1 ended then ready
          disconnect: stop -> stopping demand 1.1
          shutDown: disconnected, stop -> shut down
          pause: nothing -> connecting demand 1.1 then paused
        pausing: connecting demand 1.1 then paused
          connect: throws rejected
          request: join
          requestOnly: join
          subscribe: nothing -> connecting demand 1.1 wanted then paused
          turn: open 1
          turnLater: open 1
          accepted: connected, close -> closing then paused
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding paused
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding paused
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding paused
          lost: nothing -> connecting demand 1.1 ended then paused
          closed: nothing -> connecting demand 1.1 ended then paused
          disconnect: stop -> stopping demand 1.1
          shutDown: disconnected, stop -> shut down
          resume: nothing -> connecting demand 1.1 then ready
        wanted: connecting demand 1.1 wanted then ready
          connect: throws rejected
          request: join
          requestOnly: join
          turn: open 1
          turnLater: open 1
          accepted: connected -> connected
          failed: waiting 1 s for 1 (lost), begin, fail (lost) -> waiting subscription 2.0 until 101 s
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: waiting 0 s for 1 (the attempt to connect was cancelled), begin, fail (the attempt to connect was cancelled) -> waiting subscription 2.0 until 100 s
          lost: nothing -> connecting demand 1.1 wanted ended then ready
          closed: nothing -> connecting demand 1.1 wanted ended then ready
          disconnect: stop -> stopping demand 1.1 wanted
          shutDown: disconnected, stop -> shut down
          pause: nothing -> connecting demand 1.1 wanted then paused
        reconnecting: connecting loss 2.1 then ready
          connect: join for a time
          request: join for a time
          requestOnly: join for a time
          subscribe: nothing -> connecting loss 2.1 wanted then ready
          turn: open 1
          turnLater: open 1
          accepted: connected -> connected
          failed: waiting 7 s for 2 (lost) -> waiting loss 2.1 until 107 s
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          lost: nothing -> connecting loss 2.1 ended then ready
          closed: nothing -> connecting loss 2.1 ended then ready
          disconnect: stop -> stopping loss 2.1
          shutDown: disconnected, stop -> shut down
          pause: nothing -> connecting loss 2.1 then paused
        pausingAgain: connecting loss 2.1 then paused
          connect: join for a time -> connecting loss 2.1 then ready
          request: join for a time
          requestOnly: join for a time
          subscribe: nothing -> connecting loss 2.1 wanted then paused
          turn: open 1
          turnLater: open 1
          accepted: connected, close -> closing then paused
          failed: waiting for 2 (lost) -> paused loss 2.1
          failedForGood: waiting for 2 (refused) -> paused loss 2.1
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding paused
          lost: nothing -> connecting loss 2.1 ended then paused
          closed: nothing -> connecting loss 2.1 ended then paused
          disconnect: stop -> stopping loss 2.1
          shutDown: disconnected, stop -> shut down
          resume: nothing -> connecting loss 2.1 then ready
        early: connecting demand 1.1 ended then ready
          connect: throws rejected
          request: join
          requestOnly: join
          subscribe: nothing -> connecting demand 1.1 wanted ended then ready
          turn: open 1
          turnLater: open 1
          opening: nothing -> connecting demand 1.1 then ready
          accepted: connected, ended (lost), waiting 1 s for 1 (lost), begin -> waiting loss 2.0 until 101 s
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          disconnect: stop -> stopping demand 1.1 ended
          shutDown: disconnected, stop -> shut down
          pause: nothing -> connecting demand 1.1 ended then paused
        connected: connected
          connect: throws rejected
          request: use
          requestOnly: use
          lost: ended (lost), waiting 1 s for 1 (lost), begin -> waiting loss 2.0 until 101 s
          closed: ended, disconnected, conclude -> concluding ready
          disconnect: close -> closing then disconnected
          shutDown: disconnected, ended, close -> shut down
          pause: close -> closing then paused
        waiting: waiting loss 2.0 until 101 s
          connect: wake -> waiting loss 2.0 until now
          request: join for a time
          requestOnly: join for a time
          turn: wait
          turnLater: connecting 1, open 1 -> connecting loss 2.1 then ready
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          disconnect: stop -> stopping loss 2.0
          shutDown: disconnected, stop -> shut down
          pause: waiting for 1 (lost) -> paused loss 2.0
          resume: wake -> waiting loss 2.0 until now
          retryNow: wake -> waiting loss 2.0 until now
        waitingForNothing: waiting loss 2.0 until now
          connect: wake
          request: join for a time
          requestOnly: join for a time
          turn: connecting 1, open 1 -> connecting loss 2.1 then ready
          turnLater: connecting 1, open 1 -> connecting loss 2.1 then ready
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          disconnect: stop -> stopping loss 2.0
          shutDown: disconnected, stop -> shut down
          pause: waiting for 1 (lost) -> paused loss 2.0
          resume: wake
          retryNow: wake
        paused: paused loss 2.0
          connect: wake -> waiting loss 2.0 until now
          request: join for a time
          requestOnly: join for a time
          turn: wait to be woken
          turnLater: wait to be woken
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding paused
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding paused
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding paused
          disconnect: stop -> stopping loss 2.0
          shutDown: disconnected, stop -> shut down
          resume: wake -> waiting loss 2.0 until now
        closing: closing then paused
          connect: throws rejected
          request: use
          requestOnly: use
          lost: ended (lost), waiting for 1 (lost), begin -> paused loss 2.0
          closed: ended, waiting for 1 (the connection is paused), begin -> paused loss 2.0
          disconnect: close -> closing then disconnected
          shutDown: disconnected, ended, close -> shut down
          pause: close
          resume: nothing -> closing then ready
        closingInVain: closing then ready
          connect: throws rejected
          request: use
          requestOnly: use
          lost: ended (lost), waiting 1 s for 1 (lost), begin -> waiting loss 2.0 until 101 s
          closed: ended, waiting 0 s for 1 (the connection is paused), begin -> waiting loss 2.0 until 100 s
          disconnect: close -> closing then disconnected
          shutDown: disconnected, ended, close -> shut down
          pause: close -> closing then paused
        disconnecting: closing then disconnected
          connect: throws rejected
          request: use
          requestOnly: use
          lost: ended (lost), disconnected, conclude -> concluding disconnected
          closed: ended, disconnected, conclude -> concluding disconnected
          disconnect: close
          shutDown: disconnected, ended, close -> shut down
        dialing: connecting demand 1.1 then ready
          connect: throws rejected
          request: join
          requestOnly: join
          subscribe: nothing -> connecting demand 1.1 wanted then ready
          turn: open 1
          turnLater: open 1
          accepted: connected -> connected
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          lost: nothing -> connecting demand 1.1 ended then ready
          closed: nothing -> connecting demand 1.1 ended then ready
          disconnect: stop -> stopping demand 1.1
          shutDown: disconnected, stop -> shut down
          pause: nothing -> connecting demand 1.1 then paused
        held: idle ready held until 101 s
          connect: connecting 1, begin -> connecting demand 2.1 then ready
          request: waiting 1 s for 1 (lost), begin -> waiting demand 2.0 until 101 s
          requestOnly: throws notConnected
          subscribe: begin -> waiting subscription 2.0 until 101 s
          disconnect: nothing -> idle disconnected held until 101 s
          shutDown: conclude for good -> shut down
          pause: nothing -> idle paused held until 101 s
          resume: nothing -> idle ready
          retryNow: nothing -> idle ready
        heldRequest: waiting demand 2.0 until 101 s
          connect: wake -> waiting demand 2.0 until now
          request: join
          requestOnly: join
          subscribe: nothing -> waiting demand 2.0 wanted until 101 s
          turn: wait
          turnLater: connecting 1, open 1 -> connecting demand 2.1 then ready
          failed: disconnected (lost), conclude (lost), fail (lost) -> concluding ready
          failedForGood: disconnected (refused), conclude (refused), fail (refused) -> concluding ready
          cancelled: disconnected, conclude, fail (the attempt to connect was cancelled) -> concluding ready
          disconnect: stop -> stopping demand 2.0
          shutDown: disconnected, stop -> shut down
          pause: waiting for 1 (lost) -> paused demand 2.0
          resume: wake -> waiting demand 2.0 until now
          retryNow: wake -> waiting demand 2.0 until now
        heldSubscription: waiting demand 2.0 wanted until 101 s
          connect: wake -> waiting demand 2.0 wanted until now
          request: join
          requestOnly: join
          turn: wait
          turnLater: connecting 1, open 1 -> connecting demand 2.1 wanted then ready
          failed: waiting 1 s for 1 (lost), begin, fail (lost) -> waiting subscription 3.0 until 101 s
          failedForGood: waiting 1 s for 1 (refused), begin, fail (refused) -> waiting subscription 3.0 until 101 s
          cancelled: waiting 1 s for 1 (the attempt to connect was cancelled), begin, fail (the attempt to connect was cancelled) -> waiting subscription 3.0 until 101 s
          disconnect: stop -> stopping demand 2.0 wanted
          shutDown: disconnected, stop -> shut down
          pause: waiting for 1 (lost) -> paused demand 2.0 wanted
          resume: wake -> waiting demand 2.0 wanted until now
          retryNow: wake -> waiting demand 2.0 wanted until now
        stopping: stopping loss 2.1
          connect: postpone
          request: join for a time
          requestOnly: join for a time
          failed: disconnected, conclude, fail (lost) -> concluding disconnected
          failedForGood: disconnected, conclude, fail (refused) -> concluding disconnected
          cancelled: disconnected, conclude, fail (disconnected while connecting) -> concluding disconnected
          disconnect: stop
          shutDown: disconnected, stop -> shut down
        stoppingFirst: stopping demand 1.1
          connect: postpone
          request: join
          requestOnly: join
          failed: disconnected, conclude, fail (lost) -> concluding disconnected
          failedForGood: disconnected, conclude, fail (refused) -> concluding disconnected
          cancelled: disconnected, conclude, fail (disconnected while connecting) -> concluding disconnected
          disconnect: stop
          shutDown: disconnected, stop -> shut down
        concluding: concluding ready
          connect: postpone
          request: postpone
          requestOnly: throws notConnected
          subscribe: postpone
          disconnect: nothing -> concluding disconnected
          shutDown: conclude for good -> shut down
          pause: nothing -> concluding paused
          concluded: nothing -> idle ready
        concludingPaused: concluding paused
          connect: postpone
          request: postpone
          requestOnly: throws notConnected
          subscribe: postpone
          disconnect: nothing -> concluding disconnected
          shutDown: conclude for good -> shut down
          resume: nothing -> concluding ready
          concluded: nothing -> idle paused
        concludingLeft: concluding disconnected
          connect: postpone
          request: throws notConnected
          requestOnly: throws notConnected
          subscribe: postpone
          shutDown: conclude for good -> shut down
          concluded: nothing -> idle disconnected
        shutDown: shut down
          connect: throws shutDown
          request: throws shutDown
          requestOnly: throws shutDown
          cancelled: fail (the transport was shut down)
          lost: conclude for good
          closed: conclude for good
          lostOther: conclude for good
          disconnect: throws shutDown
        """
}
