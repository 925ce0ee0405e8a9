// Millwright-manager manages machine objects of Kubernetes with a simulated provider. It is for
// trials. A provider has a command of its own, which differs from this one in its driver only (see
// package app).
//
//	millwright-manager --kubeconfig=FILE --namespace=machines --simulated-dir=DIR
//
// --help lists the settings; the exit status is that of package app.
package main

import (
	"context"

	"github.com/millwright-go/millwright/adapters/kubernetes/app"
	"github.com/millwright-go/millwright/adapters/kubernetes/internal/trial"
)

func main() { app.Exit(trial.Program().Run(context.Background())) }
