/// The value of an option that holds options of its own, such as the will of a connection.
package protocol OptionHolder {
    /// Removes an option; does nothing where it is absent.
    mutating func omit(_ name: OptionName)
}
