// Package mcm runs a provider of machine-controller-manager as it is:
//
//	func main() { app.Exit(mcm.Run(context.Background(), myprovider.NewDriver())) }
//
// The package does not import machine-controller-manager: the types come with the provider's methods. A
// provider gets machines and classes as machine-controller-manager would have read them from the API
// server: they are converted by way of JSON. Everything else is passed field by field. A program with
// settings of its own uses [Driver] in app.Program, and [RegisterMetrics].
//
// # What the provider gets
//
//   - The machine and the class with metadata, spec and status. They are copies, so the provider may
//     change them.
//   - A secret without a name. It has the data of secretRef and of credentialsSecretRef; the latter wins.
//     The placeholders in the user data are replaced.
//   - The specs of volumes as the cluster has them, also those without CSI.
//
// # What the provider answers
//
// The code of an error is what its method Code returns, as a name or a number. If no error in the chain
// has that method, the code is read from the text, as machine-controller-manager does ("machine codes
// error: code = [NotFound] message = […]"). NOT_FOUND of a deletion is success. Everything else has the
// same meaning as in driver.Driver.
//
// # A create that is not idempotent
//
// driver.Driver requires that a repeated create adopts the existing VM. Providers of
// machine-controller-manager often create another VM instead, and rely on a call of GetMachineStatus
// before. The manager of this library, too, calls it before every create, and makes one call for a
// machine at a time. So if GetMachineStatus finds VMs by the name of the machine, no second VM is
// created, even if the answer to a create was lost. If a provider has no GetMachineStatus, or it finds
// VMs only by provider ID, a second VM may be created then, as with machine-controller-manager. Later the
// manager finds the first VM with ListMachines, and deletes it.
//
// # Metrics
//
// Providers count their calls in the default registry of Prometheus. [Run] serves these metrics with the
// manager's own.
package mcm
