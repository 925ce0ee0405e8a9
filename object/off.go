package object

// Off turns a setting of a policy off, where the comment of the setting says so. It is a duration or
// a count, as the setting is.
//
// Zero never means off: in policies and options, nil and zero mean the default. The exceptions are
// what has no name for off:
//   - A bool is what it says.
//   - Where the default is zero, zero is a number like others: no names in advance, no limit.
//   - Keys without any key are the default ones. In Keys with some, an empty key switches its
//     feature off.
//   - A list that is empty but not nil has no entries.
//   - A decision of safety needs a policy that was meant: without one it is an error, see
//     safety.ErrNoPolicy.
const Off = -1
