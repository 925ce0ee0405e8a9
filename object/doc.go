// Package object holds what all stored kinds share: keys and metadata, owners, label selectors,
// conditions and taints, and the interface by which a store can keep objects of any kind.
//
// A kind embeds [Meta] and implements [Object]: Clone, CopyStatus and SpecEqual. With these a store
// can tell a change of the spec, which raises the generation, from one of the status.
//
// Objects are shared between a store and all its readers. Read them only; to change one, change the
// result of Clone.
//
//   - [Key] is namespace and name. The UID in Meta tells two objects apart that had the same key, one
//     after the other.
//   - [Selector] matches labels. The zero Selector matches nothing, so that a forgotten one never
//     adopts a fleet.
//   - [SetCondition] and the functions beside it return changed lists and leave their arguments alone.
//     A condition's Since changes only with its status.
//   - [Off] turns a setting of a policy off; zero is its default.
//   - [FieldError] is the error of every Validate: which field, and what is wrong with it.
package object
