// Package app turns a driver into a program: a manager of machines on Kubernetes, with settings, leader
// election, metrics, health checks and logs. This is the whole main function of a provider:
//
//	func main() { app.Exit(app.Run(context.Background(), myDriver)) }
//
// # Settings
//
// Each setting is a flag (--machine-drain-timeout=1h), an environment variable
// (MILLWRIGHT_MACHINE_DRAIN_TIMEOUT=1h) and a key of the YAML file that the setting config names
// (machine-drain-timeout: 1h). Flags override variables, and variables override the file.
// docs/reference/settings.md and --help list all settings. Settings that machine-controller-manager has,
// too, have the same names.
//
// An invalid setting, or an unknown key in the file, ends the program before it contacts any server.
//
// # Exit status
//
//	0  ended by SIGTERM or SIGINT: running operations have finished, and the
//	   lease was released; also after --help and --version
//	1  failed: for example the lease was lost, or running operations took
//	   longer than shutdown-timeout to finish
//	2  the settings are invalid, or an address can't be bound; one line on
//	   standard error says which setting and why
//
// A second signal ends the program at once.
//
// # Logs
//
// Errors are written to standard error, all else to standard output, also what the Kubernetes libraries
// log. No level logs a secret.
package app
