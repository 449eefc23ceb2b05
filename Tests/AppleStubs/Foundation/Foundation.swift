@_exported public import CoreFoundation
@_exported public import Darwin
@_exported public import Dispatch
@_exported public import FoundationEssentials

// Stands in for Foundation, which on Apple platforms has in it what FoundationEssentials has on Linux, and gives on
// the other three.
