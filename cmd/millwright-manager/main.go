// Millwright-manager manages machine objects of Kubernetes with a simulated provider. It is for trials
// only. A provider's own command differs from this one only in its driver: see package app.
//
//	millwright-manager --kubeconfig=FILE --namespace=machines --simulated-dir=DIR
//
// --help lists the settings. Package app documents the exit status.
package main

import (
	"context"

	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
	"github.com/millwright-go/millwright/cmd/millwright-manager/internal/trial"
)

func main() { app.Exit(trial.Program().Run(context.Background())) }
