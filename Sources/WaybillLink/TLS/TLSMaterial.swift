extension TLSSettings {
    /// Whether the settings refer to files, which may change.
    var readsFiles: Bool {
        var all = authorities
        switch identity {
        case .certificate(let certificate, let key, _): all += [certificate, key]
        case .pkcs12(let file, _): all.append(file)
        case .keychain, nil: break
        }
        return all.contains { material in
            guard case .file = material else { return false }
            return true
        }
    }
}

extension TLSSettings.Material: CustomStringConvertible {
    /// The path, never the content.
    package var description: String {
        switch self {
        case .file(let path): path
        case .bytes: "what was given"
        }
    }

    /// The bytes, read from the file if there is one.
    ///
    /// - Throws: `invalidSettings` for a file that cannot be read.
    func bytes() throws(LinkError) -> [UInt8] {
        switch self {
        case .bytes(let bytes): return bytes
        case .file(let path):
            guard let bytes = SystemFile.contents(of: path) else {
                throw .tls(.invalidSettings("\(path) cannot be read"))
            }
            return bytes
        }
    }
}
