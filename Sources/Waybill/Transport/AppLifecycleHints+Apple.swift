#if canImport(Network)
    #if canImport(FoundationEssentials)
        public import FoundationEssentials
    #else
        public import Foundation
    #endif

    /// Has transports pause while the app is in the background.
    ///
    /// The system suspends an app there, and its connections die without a word: closing them is cheaper for the
    /// battery than finding them dead, and servers learn of it.
    public struct AppLifecycleHints: ConnectionHintSource {
        private let background: Notification.Name
        private let foreground: Notification.Name
        private let center: Center

        /// Those of an app with UIKit or SwiftUI on iOS, tvOS and visionOS.
        public init() {
            self.init(
                background: Notification.Name("UIApplicationDidEnterBackgroundNotification"),
                foreground: Notification.Name("UIApplicationWillEnterForegroundNotification")
            )
        }

        /// Those of another kind of app.
        ///
        /// - Parameters:
        ///   - background: What is posted when the app goes to the background.
        ///   - foreground: What is posted when it comes back.
        ///   - center: Where they are posted.
        public init(
            background: Notification.Name,
            foreground: Notification.Name,
            center: NotificationCenter = .default
        ) {
            self.background = background
            self.foreground = foreground
            self.center = Center(center)
        }

        /// Those of a Mac that goes to sleep and wakes.
        ///
        /// Connections do not outlive a longer sleep, and the clock of keep alives stands still meanwhile.
        ///
        /// - Parameter center: `NSWorkspace.shared.notificationCenter`, the one where the system posts them.
        /// - Returns: Hints that pause before the sleep and resume after it.
        public static func sleepAndWake(center: NotificationCenter) -> AppLifecycleHints {
            AppLifecycleHints(
                background: Notification.Name("NSWorkspaceWillSleepNotification"),
                foreground: Notification.Name("NSWorkspaceDidWakeNotification"),
                center: center
            )
        }

        /// Begins to listen to the notification center.
        public func start(
            _ tell: @escaping @Sendable (ConnectionHint) -> Void
        ) -> any CancelHandle {
            func observe(_ name: Notification.Name, _ hint: ConnectionHint) -> any NSObjectProtocol
            {
                center.center.addObserver(forName: name, object: nil, queue: nil) {
                    _ in tell(hint)
                }
            }
            let tokens = [observe(background, .pause), observe(foreground, .resume)]
            return Observers(tokens, at: center)
        }

        /// `@unchecked Sendable`, because: any thread may call a notification center, and the reference never changes.
        private final class Center: @unchecked Sendable {
            let center: NotificationCenter

            init(_ center: NotificationCenter) {
                self.center = center
            }
        }

        /// `@unchecked Sendable`, because: the tokens are set once, before anybody else has them, and then only given
        /// back to the notification center, which any thread may call.
        private final class Observers: CancelHandle, @unchecked Sendable {
            private let tokens: [any NSObjectProtocol]
            private let center: Center

            init(_ tokens: [any NSObjectProtocol], at center: Center) {
                self.tokens = tokens
                self.center = center
            }

            func cancel() {
                for token in tokens { center.center.removeObserver(token) }
            }
        }
    }
#endif
