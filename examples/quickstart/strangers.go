package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// otherCluster is the tag of processes that are none of this fleet's.
const otherCluster = "other"

// strangers are two processes that no manager has made: one has the fleet's tag, the other has not.
// No ledger has them, and they end with this program.
type strangers struct {
	host          *procdriver.Host
	stray, others registry.Occupant
}

// bringStrangers starts both.
func (p *play) bringStrangers(ctx context.Context) (*strangers, error) {
	host, err := procdriver.NewHost(procdriver.HostOptions{Program: p.Program()})
	if err != nil {
		return nil, err
	}
	s := &strangers{host: host}
	s.stray, err = p.bring(ctx, host, clusterName)
	if err == nil {
		s.others, err = p.bring(ctx, host, otherCluster)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// bring starts a process that no manager knows, with that tag, through a driver.
func (p *play) bring(ctx context.Context, host *procdriver.Host, cluster string) (registry.Occupant, error) {
	d, err := procdriver.New(procdriver.Options{Dir: p.records(), Host: host})
	if err != nil {
		return registry.Occupant{}, err
	}
	const name = "stray"
	_, err = d.CreateMachine(ctx, &driver.CreateMachineRequest{
		Machine: &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: name}}},
		Class:   newClass(cluster, "v1"),
	})
	if err != nil {
		return registry.Occupant{}, err
	}
	who, ok := p.recordsOf(cluster).Occupant(name)
	if !ok {
		return registry.Occupant{}, errors.New("a process that was started has gone")
	}
	return who, nil
}

// close ends those that are left.
func (s *strangers) close() error {
	s.host.Close()
	if s.stray.ID.Alive() || s.others.ID.Alive() {
		return errors.New("a process without a machine does not end")
	}
	return nil
}

// checkStrangers waits until the one with the fleet's tag was collected, and requires that the
// other one was not.
func (p *play) checkStrangers(ctx context.Context, s *strangers) error {
	err := p.Await(ctx, func() string {
		if s.stray.ID.Alive() {
			return fmt.Sprintf("the end of process %d, which is no machine's", s.stray.ID.PID)
		}
		return ""
	})
	if err != nil {
		return err
	}
	if !s.others.ID.Alive() {
		return fmt.Errorf("process %d, which is another fleet's, was ended", s.others.ID.PID)
	}
	p.Say("process %d, with the fleet's tag and no machine, was ended; process %d, with another one, was left alone",
		s.stray.ID.PID, s.others.ID.PID)
	return nil
}
