#if os(Linux)
    import WireCore

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// Resolves host names without blocking the event loop.
    enum NameResolver {
        /// Resolves on a separate thread, because the system's resolver blocks; a literal address needs no thread.
        ///
        /// - Parameters:
        ///   - endpoint: The name and the port for the addresses.
        ///   - completion: Called once, on any thread.
        static func resolve(
            _ endpoint: Endpoint,
            _ completion: @escaping @Sendable (Result<[SocketAddress], LinkError>) -> Void
        ) {
            if case .success(let addresses) = lookUp(endpoint, flags: AI_NUMERICHOST) {
                return completion(.success(addresses))
            }
            do throws(LinkError) {
                let thread = try SystemThread.start {
                    completion(lookUp(endpoint, flags: AI_ADDRCONFIG))
                }
                pthread_detach(thread)
            } catch {
                completion(.failure(error))
            }
        }

        private static func lookUp(
            _ endpoint: Endpoint,
            flags: Int32
        ) -> Result<[SocketAddress], LinkError> {
            var hints = addrinfo()
            #if canImport(Glibc)
                hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            #else
                hints.ai_socktype = SOCK_STREAM
            #endif
            hints.ai_flags = flags | AI_NUMERICSERV
            var list: UnsafeMutablePointer<addrinfo>?
            let code = getaddrinfo(endpoint.host, String(endpoint.port), &hints, &list)
            defer { if let list { freeaddrinfo(list) } }
            guard code == 0 else {
                // The resolver has no error code for missing descriptors.
                if let error = Socket.descriptorShortage() { return .failure(error) }
                let reason = String(cString: gai_strerror(code))
                return .failure(.nameNotResolved(host: endpoint.host, reason: reason))
            }
            var addresses: [SocketAddress] = []
            var next = list
            while let entry = next?.pointee {
                next = entry.ai_next
                guard let address = entry.ai_addr else { continue }
                // The resolver guarantees `ai_addrlen` bytes at `ai_addr` until `freeaddrinfo`.
                let bytes = UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen))
                addresses.append(SocketAddress(family: entry.ai_family, bytes: Array(bytes)))
            }
            return .success(addresses)
        }
    }
#endif
