// Package mcm runs a provider of machine-controller-manager as it is:
//
//	func main() { app.Exit(mcm.Run(context.Background(), myprovider.NewDriver())) }
//
// The package imports nothing of machine-controller-manager: its types come with the provider's
// methods. A machine and a class reach the provider as the objects that its own manager would have
// read, by their JSON. All else is passed field by field. In a program with settings of its own,
// use [Driver] in app.Program, and [RegisterMetrics].
//
// # What the provider gets
//
//   - The machine with its metadata, spec and status, and the class with its own. Both are
//     copies, so that a provider may change them.
//   - A secret with data and no name: that of secretRef, and over it that of
//     credentialsSecretRef. The placeholders in its user data are replaced.
//   - The specs of volumes as the cluster has them, also those with a source from
//     before CSI.
//
// # What it answers
//
// An error's code is that of its method Code, by name or else by number. If no error has one, the
// code is read from the text, as machine-controller-manager does ("machine codes error: code =
// [NotFound] message = […]"). A deletion that answers NOT_FOUND is done. All else has the meaning
// that it has in driver.Driver.
//
// # A create that is not idempotent
//
// driver.Driver requires a create that adopts the VM of an earlier create. Providers of
// machine-controller-manager often make another VM instead, and rely on a call of GetMachineStatus
// first. This package calls it first too, before every create, and calls for one machine follow one
// another. So a provider whose GetMachineStatus finds VMs by the name of the machine makes no
// second one, even if the answer of a create was lost. A provider without GetMachineStatus, or one
// that finds a VM by provider ID alone, may make a second VM then, as with
// machine-controller-manager. The manager finds the first one with ListMachines and deletes it
// later.
//
// # Metrics
//
// A provider counts its calls in the default registry of Prometheus.
// [Run] serves what is there with the manager's own metrics.
package mcm
