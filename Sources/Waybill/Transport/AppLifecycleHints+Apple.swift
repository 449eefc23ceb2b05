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
        public init(background: Notification.Name, foreground: Notification.Name) {
            self.background = background
            self.foreground = foreground
        }

        /// Begins to listen to the default notification center.
        public func start(
            _ tell: @escaping @Sendable (ConnectionHint) -> Void
        ) -> any Cancellable {
            func observe(_ name: Notification.Name, _ hint: ConnectionHint) -> any NSObjectProtocol
            {
                NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) {
                    _ in tell(hint)
                }
            }
            return Observers([observe(background, .pause), observe(foreground, .resume)])
        }

        /// `@unchecked Sendable`, because: the tokens are set once, before anybody else has them, and then only given
        /// back to the notification center, which any thread may call.
        private final class Observers: Cancellable, @unchecked Sendable {
            private let tokens: [any NSObjectProtocol]

            init(_ tokens: [any NSObjectProtocol]) {
                self.tokens = tokens
            }

            func cancel() {
                for token in tokens { NotificationCenter.default.removeObserver(token) }
            }
        }
    }
#endif
