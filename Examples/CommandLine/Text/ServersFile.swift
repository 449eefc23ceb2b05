/// The settings of servers in a file, by their names.
///
/// ```
/// # A comment.
/// [home]
/// url = mqtts://broker.example
/// username = ada
/// password-file = ~/.config/waybill/home.password
/// ```
package struct ServersFile: Sendable {
    /// The settings of one server, in the order of the file.
    package struct Server: Sendable {
        package let name: String
        package fileprivate(set) var settings: [(key: String, value: String)] = []

        /// The last value of a key.
        package subscript(key: String) -> String? { settings.last { $0.key == key }?.value }

        /// All values of a key.
        package func all(_ key: String) -> [String] {
            settings.filter { $0.key == key }.map(\.value)
        }
    }

    /// The keys that a server may have.
    package static let keys = [
        "url", "protocol", "mqtt-version", "client-id", "username", "password", "password-file",
        "token-file", "ca", "certificate", "key", "virtual-host", "keep-alive", "header",
    ]

    package private(set) var servers: [Server] = []

    /// Reads a file's text.
    ///
    /// - Throws: `TextError` with the number of the line.
    package init(_ text: String) throws(TextError) {
        let lines = text.split(omittingEmptySubsequences: false) { $0.isNewline }
        for (index, line) in lines.enumerated() {
            let line = trimmed(line)
            if line.isEmpty || line.first == "#" { continue }
            if line.first == "[" {
                guard line.last == "]", line.count > 2 else {
                    throw TextError("line \(index + 1): write the name of a server as [name]")
                }
                servers.append(Server(name: String(trimmed(line.dropFirst().dropLast()))))
                continue
            }
            guard let mark = line.firstIndex(of: "=") else {
                throw TextError("line \(index + 1): write a setting as key = value")
            }
            let key = String(trimmed(line[..<mark]))
            guard Self.keys.contains(key) else {
                let keys = Self.keys.joined(separator: ", ")
                throw TextError("line \(index + 1): \(key) is none of the settings \(keys)")
            }
            guard !servers.isEmpty else {
                throw TextError("line \(index + 1): write the name of a server as [name] first")
            }
            servers[servers.count - 1].settings.append(
                (key, String(trimmed(line[line.index(after: mark)...])))
            )
        }
    }

    /// The server with a name.
    ///
    /// - Throws: `TextError` with the names that there are.
    package func server(named name: String) throws(TextError) -> Server {
        if let server = servers.last(where: { $0.name == name }) { return server }
        let names = servers.map(\.name).joined(separator: ", ")
        throw TextError("there is no server [\(name)]; there is \(names.isEmpty ? "none" : names)")
    }
}

private func trimmed(_ text: Substring) -> Substring {
    var text = text.drop(while: \.isWhitespace)
    while text.last?.isWhitespace == true { text.removeLast() }
    return text
}
