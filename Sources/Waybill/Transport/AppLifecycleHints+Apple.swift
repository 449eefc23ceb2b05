#if canImport(Network)
    #if canImport(FoundationEssentials)
        public import FoundationEssentials
    #else
        public import Foundation
    #endif

    /// Pauses transports while the app is in the background.
    ///
    /// The system suspends an app in the background, and its connections die without a notice. Closing them first costs
    /// less battery than detecting dead connections, and the servers learn of it.
    ///
    /// | where | what it does |
    /// | --- | --- |
    /// | apps on iOS, tvOS, visionOS and Mac Catalyst | pauses in the background |
    /// | apps on watchOS | nothing, unless ``init(background:foreground:center:)`` gets the names of its notifications |
    /// | apps for the Mac | nothing: they run on in the background; ``sleepAndWake(center:)`` pauses for the sleep |
    /// | extensions and command-line tools | nothing: the system posts no such notification |
    public struct AppLifecycleHints: ConnectionHintSource {
        private let background: Notification.Name
        private let foreground: Notification.Name
        private let center: Center

        /// The notifications of an app with UIKit or SwiftUI on iOS, tvOS, visionOS and Mac Catalyst.
        ///
        /// On a Mac, on watchOS and in an extension nothing posts them, so the hints do nothing there.
        public init() {
            self.init(
                background: Notification.Name("UIApplicationDidEnterBackgroundNotification"),
                foreground: Notification.Name("UIApplicationWillEnterForegroundNotification")
            )
        }

        /// The notifications of another kind of app.
        ///
        /// - Parameters:
        ///   - background: The notification that the app goes to the background.
        ///   - foreground: The notification that the app comes back.
        ///   - center: The notification center that posts them.
        public init(
            background: Notification.Name,
            foreground: Notification.Name,
            center: NotificationCenter = .default
        ) {
            self.background = background
            self.foreground = foreground
            self.center = Center(center)
        }

        /// The notifications of a Mac that goes to sleep and wakes.
        ///
        /// Connections do not survive a longer sleep, and the clock of keep alives stands still meanwhile.
        ///
        /// - Parameter center: `NSWorkspace.shared.notificationCenter`, where the system posts these notifications.
        /// - Returns: Hints that pause before the sleep and resume after it.
        public static func sleepAndWake(center: NotificationCenter) -> AppLifecycleHints {
            AppLifecycleHints(
                background: Notification.Name("NSWorkspaceWillSleepNotification"),
                foreground: Notification.Name("NSWorkspaceDidWakeNotification"),
                center: center
            )
        }

        /// Starts to observe the notification center.
        public func start(
            _ tell: @escaping @Sendable (ConnectionHint) -> Void
        ) -> RequestHandle {
            func observe(_ name: Notification.Name, _ hint: ConnectionHint) -> any NSObjectProtocol
            {
                center.center.addObserver(forName: name, object: nil, queue: nil) {
                    _ in tell(hint)
                }
            }
            let tokens = [observe(background, .pause), observe(foreground, .resume)]
            let observers = Observers(tokens, at: center)
            return RequestHandle { observers.end() }
        }

        /// `@unchecked Sendable`, because: any thread may call a notification center, and the reference never changes.
        private final class Center: @unchecked Sendable {
            let center: NotificationCenter

            init(_ center: NotificationCenter) {
                self.center = center
            }
        }

        /// `@unchecked Sendable`, because: the tokens are set once, before another thread can see them;
        /// after that they are only passed to the notification center, which any thread may call.
        private final class Observers: @unchecked Sendable {
            private let tokens: [any NSObjectProtocol]
            private let center: Center

            init(_ tokens: [any NSObjectProtocol], at center: Center) {
                self.tokens = tokens
                self.center = center
            }

            func end() {
                for token in tokens { center.center.removeObserver(token) }
            }
        }
    }
#endif
