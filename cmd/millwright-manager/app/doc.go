// Package app makes a program of a driver: a manager of machines on Kubernetes
// with its settings, leader election, metrics, health checks and logs. The
// whole main of a provider is
//
//	func main() { app.Exit(app.Run(context.Background(), myDriver)) }
//
// # Settings
//
// Each setting is a flag (--machine-drain-timeout=1h), an environment variable
// (MILLWRIGHT_MACHINE_DRAIN_TIMEOUT=1h) and a key of the YAML file that the setting config names
// (machine-drain-timeout: 1h). A flag wins over a variable, a variable over the file, the file over
// the default. docs/reference/settings.md and --help list them all. Settings that users of
// machine-controller-manager know have its names.
//
// A setting that can't work, or an unknown key in the file, ends the program before it contacts any
// server.
//
// # Exit status
//
//	0  ended as asked for, by SIGTERM or SIGINT: what was under way has ended,
//	   and the lease is free for a successor; also after --help and --version
//	1  failed: the lease was lost, or what was under way took longer than
//	   shutdown-timeout to end
//	2  the settings can't work, or an address of theirs can't be bound; one line
//	   on standard error says which and why
//
// A second signal ends the program at once.
//
// # Logs
//
// Errors are written to standard error, all else to standard output. That includes what the
// libraries for Kubernetes log. No level logs a secret.
package app
