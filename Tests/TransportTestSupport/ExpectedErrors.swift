package import Testing
package import Waybill

/// Checks that a call throws an error with this code.
/// - Returns: The error; nil if the call throws none or another type.
@discardableResult
package func expectError<T>(
    _ code: WaybillError.Code,
    _ location: SourceLocation = #_sourceLocation,
    _ body: () async throws -> T
) async -> WaybillError? {
    do {
        _ = try await body()
        Issue.record("no error", sourceLocation: location)
        return nil
    } catch {
        let found = error as? WaybillError
        #expect(found?.code == code, "\(error)", sourceLocation: location)
        return found
    }
}
