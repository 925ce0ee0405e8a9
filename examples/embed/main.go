// Embed is the program to start from when you embed the library in one of your own. It keeps a
// number of machines, with a driver, a store in a file and a manager:
//
//	go -C examples run ./embed -state /tmp/fleet.db -replicas 3
//
// Ctrl-C or SIGTERM ends the program, and the machines stay. The same command continues, and another
// number of replicas scales. To make a program of your own, replace driver.go. Its VMs are entries of
// a file beside the state.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// webKey is the name of the one deployment.
var webKey = object.Key{Namespace: "fleet", Name: "web"}

func main() {
	state := flag.String("state", "fleet.db", "the `file` that keeps all objects; its directory must exist")
	replicas := flag.Uint("replicas", 3, "how many machines to keep; 0 deletes all")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	if err := run(ctx, log, *state, int32(min(*replicas, math.MaxInt32))); err != nil {
		log.Error("the fleet is not managed any more", "error", err)
		os.Exit(1)
	}
}

// run manages the fleet until ctx ends. When it returns, all work has stopped and the store is
// closed. A program that is killed instead loses no machine either.
func run(ctx context.Context, log *slog.Logger, state string, replicas int32) (err error) {
	db, err := bolt.OpenContext(ctx, state, bolt.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	options := db.ManagerOptions()
	options.Driver = &fileDriver{path: state + ".vms"} // yours
	options.Log = log
	m, err := manager.New(options)
	if err != nil {
		return err
	}
	if err := declare(ctx, db, replicas); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var reports sync.WaitGroup
	reports.Go(func() { report(running, log, db) })
	err = m.Run(running)
	stop()
	reports.Wait()
	return err
}

// declare stores the class and the deployment if they are absent. A deployment that is there gets the
// number of replicas.
func declare(ctx context.Context, db *bolt.DB, replicas int32) error {
	small := &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}, Provider: provider}
	small.ProviderSpec = []byte(`{"cluster": "blue", "size": "small"}`)
	if _, err := store.CreateOrEdit(ctx, db.Classes(), small, nil); err != nil {
		return err
	}
	web := &deployment.Deployment{Meta: object.Meta{Key: webKey}}
	web.Spec.Selector.Labels = map[string]string{"app": "web"}
	web.Spec.Template = machineset.Template{Labels: web.Spec.Selector.Labels}
	web.Spec.Template.Spec.Class.Name = small.Name
	_, err := store.CreateOrEdit(ctx, db.Deployments(), web, func(d *deployment.Deployment) error {
		d.Spec.Replicas = replicas
		return nil
	})
	return err
}

// report logs how far the deployment is, until it is complete or ctx ends.
func report(ctx context.Context, log *slog.Logger, db *bolt.DB) {
	d, err := store.Await(ctx, db.Deployments(), webKey, func(d *deployment.Deployment) string {
		missing := deployment.Missing(d)
		if missing != "" {
			log.Info("rollout", "deployment", d.Key, "missing", missing)
		}
		return missing
	})
	if err == nil {
		log.Info("rollout complete", "deployment", d.Key, "available", d.Status.Available)
	}
}
