package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/store"
)

// each is how many machines a deployment has.
const each = 1000

// provider answers at once.
type provider struct {
	driver.Unimplemented
	vms sync.Map // provider ID by name
}

func (p *provider) GetMachineStatus(_ context.Context, q *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	id, ok := p.vms.Load(q.Machine.Name)
	if !ok {
		return nil, codes.New(codes.NotFound, "no such VM")
	}
	return &driver.GetMachineStatusResponse{ProviderID: id.(string), NodeName: q.Machine.Name}, nil
}

func (p *provider) CreateMachine(_ context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	id := "instant:///" + q.Machine.Name
	p.vms.Store(q.Machine.Name, id)
	return &driver.CreateMachineResponse{ProviderID: id, NodeName: q.Machine.Name}, nil
}

func (p *provider) DeleteMachine(_ context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	p.vms.Delete(q.Machine.Name)
	return &driver.DeleteMachineResponse{}, nil
}

func (p *provider) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	all := make(map[string]string)
	p.vms.Range(func(name, id any) bool {
		all[id.(string)] = name.(string)
		return true
	})
	return &driver.ListMachinesResponse{Machines: all}, nil
}

// count returns how many VMs there are.
func (p *provider) count() (n int) {
	p.vms.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}

// bench is one store under measurement.
type bench struct {
	open     func(context.Context) (opened, error)
	machines int
	provider provider
	writes   atomic.Int64
}

// opened is a store that a manager can use.
type opened struct {
	options manager.Options
	db      *remote.DB // nil: it is in this process alone
	resign  func()     // ends the term of this process
	close   func()
}

// measureOne measures one store and prints the result as JSON.
func measureOne(ctx context.Context, o *options) error {
	open, end, err := opener(ctx, o.one, o.dir)
	if err != nil {
		return err
	}
	defer end()
	b := &bench{open: open, machines: o.machines}
	r, err := b.measure(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func (b *bench) measure(ctx context.Context) (r result, err error) {
	db, err := b.open(ctx)
	if err != nil {
		return r, err
	}
	stop, err := b.start(ctx, db)
	if err != nil {
		return r, err
	}
	if r.Created, r.CPUCreated, r.WritesCreated, err = b.timed(func() error { return b.create(ctx, db.options) }); err != nil {
		return r, err
	}
	if r.Rolled, r.CPURolled, r.WritesRolled, err = b.timed(func() error { return b.roll(ctx, db.options, "b") }); err != nil {
		return r, err
	}
	stop()
	db.close()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return r, err
	}
	r.Memory = usage.Maxrss << 10
	r.Acts, _, _, err = b.timed(func() error { return b.actAgain(ctx) })
	return r, err
}

// timed calls do, and returns how long it took, the processor time of the process, and the writes.
func (b *bench) timed(do func() error) (took, cpu time.Duration, writes int64, err error) {
	began, before, wrote := time.Now(), processorTime(), b.writes.Load()
	err = do()
	return time.Since(began), processorTime() - before, b.writes.Load() - wrote, err
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// start runs a manager until stop is called.
func (b *bench) start(ctx context.Context, db opened) (stop func(), err error) {
	o := db.options
	count := func() error { b.writes.Add(1); return nil }
	o.Store.Machines = store.Gate(o.Store.Machines, count)
	o.Store.Sets = store.Gate(o.Store.Sets, count)
	o.Store.Deployments = store.Gate(o.Store.Deployments, count)
	o.Driver = &b.provider
	o.Log = slog.New(slog.DiscardHandler)
	m, err := manager.New(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	return func() {
		cancel()
		<-ended
	}, nil
}

func key(i int) object.Key { return object.Key{Namespace: "fleet", Name: fmt.Sprintf("web-%03d", i)} }

// count returns how many deployments there are, and how many machines the last one has.
func (b *bench) count() int { return (b.machines + each - 1) / each }

// create creates the deployments, and waits until all machines are available.
func (b *bench) create(ctx context.Context, o manager.Options) error {
	for _, class := range []string{"a", "b"} {
		_, err := o.Store.Classes.Create(ctx, &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: class}}})
		if err != nil {
			return err
		}
	}
	for i := range b.count() {
		labels := map[string]string{"app": key(i).Name}
		_, err := o.Store.Deployments.Create(ctx, &deployment.Deployment{
			Meta: object.Meta{Key: key(i)},
			Spec: deployment.Spec{
				Replicas: int32(min(each, b.machines-i*each)),
				Selector: object.Selector{Labels: labels},
				Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "a"}}},
				Strategy: deployment.Rolling(rollout.IntOrPercent{Value: 10, Percent: true}, rollout.IntOrPercent{}),
			},
		})
		if err != nil {
			return err
		}
	}
	return b.await(ctx, o)
}

// roll rolls all deployments to a class, and waits until all machines are new and available.
func (b *bench) roll(ctx context.Context, o manager.Options, class string) error {
	for i := range b.count() {
		_, err := store.Edit(ctx, o.Store.Deployments, key(i), func(d *deployment.Deployment) error {
			d.Spec.Template.Spec.Class.Name = class
			return nil
		})
		if err != nil {
			return err
		}
	}
	return b.await(ctx, o)
}

// await waits until all deployments have what they ask for.
func (b *bench) await(ctx context.Context, o manager.Options) error {
	for i := range b.count() {
		if _, err := store.Await(ctx, o.Store.Deployments, key(i), missing); err != nil {
			return err
		}
	}
	return nil
}

func missing(d *deployment.Deployment) string {
	s, n := &d.Status, d.Spec.Replicas
	if s.ObservedGeneration < d.Generation || s.Updated != n || s.Available != n || s.Replicas != n {
		return fmt.Sprintf("%d machines, %d new, %d available of %d", s.Replicas, s.Updated, s.Available, n)
	}
	return ""
}

// actAgain opens the store again, starts a new manager, and waits until it has made one machine more.
func (b *bench) actAgain(ctx context.Context) error {
	db, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	stop, err := b.start(ctx, db)
	if err != nil {
		return err
	}
	defer stop()
	_, err = store.Edit(ctx, db.options.Store.Deployments, key(0), func(d *deployment.Deployment) error {
		d.Spec.Replicas++
		return nil
	})
	if err != nil {
		return err
	}
	_, err = store.Await(ctx, db.options.Store.Deployments, key(0), missing)
	return err
}
