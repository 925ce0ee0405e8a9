package object

// Off turns a setting of a policy off, where the comment of the setting says so. It is a duration or
// a count, as the setting is.
//
// Zero never means off: in policies and options, nil and zero mean the default. These settings have no
// Off:
//   - A bool is what it says.
//   - Where the default is zero, zero is a number like others: no names in advance, no limit.
//   - Keys without any key are the default ones. In Keys with some, an empty key switches its
//     feature off.
//   - A list that is empty but not nil has no entries.
//   - Decisions of package safety need a policy: without one they return safety.ErrNoPolicy.
const Off = -1
