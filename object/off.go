package object

// Off turns a setting of a policy off, where the comment of the setting says so. It is an untyped
// constant, so it can be assigned to a duration or to a count.
//
// Zero never means off: in policies and options, nil and zero mean the default. (Package safety has no
// default for a nil policy: its decisions return safety.ErrNoPolicy.) These settings have no Off:
//   - A bool is what it says.
//   - Where the default is zero, the comment says what zero means: none in deployment.Policy.Names, no
//     limit in drain.Policy.MaxEvictRetries.
//   - The Keys of a policy are labels, annotations and taints. If all keys are empty, the defaults
//     apply. If any is set, an empty one switches its feature off.
//   - A list that is empty but not nil has no entries.
const Off = -1
