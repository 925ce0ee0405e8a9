// Embed is a program to copy if you want to embed the library. It keeps a number of machines running,
// with a driver, a store in a file and a manager:
//
//	go -C examples run ./embed -state /tmp/fleet.db -replicas 3
//
// Ctrl-C or SIGTERM ends the program, and the machines stay. The same command continues; with another
// number of replicas, it scales the fleet. To make a program of your own, replace driver.go, whose VMs
// are only entries of a file.
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

// webKey is the name of the deployment.
var webKey = object.Key{Namespace: "fleet", Name: "web"}

func main() {
	state := flag.String("state", "fleet.db", "the `file` that keeps all objects; its directory must exist")
	replicas := flag.Uint("replicas", 3, "how many machines to keep; 0 deletes all")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if err := run(ctx, log, *state, int32(min(*replicas, math.MaxInt32))); err != nil {
		log.Error("the fleet is not managed any more", "error", err)
		os.Exit(1)
	}
}

// run manages the fleet until ctx ends. When it returns, all work has stopped and the store is closed.
// If the program is killed instead, no machine is lost either.
func run(ctx context.Context, log *slog.Logger, state string, replicas int32) (err error) {
	db, err := bolt.OpenContext(ctx, state, bolt.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	options := db.ManagerOptions()
	options.Driver = &fileDriver{path: state + ".vms"} // replace it by your driver
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

// declare creates the class and the deployment if they do not exist. An existing deployment gets the
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

// report logs what is missing until the deployment is complete, or ctx ends.
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
