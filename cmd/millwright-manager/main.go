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

	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
	"github.com/millwright-go/millwright/cmd/millwright-manager/internal/trial"
)

func main() { app.Exit(trial.Program().Run(context.Background())) }
