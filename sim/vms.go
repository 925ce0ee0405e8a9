package sim

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/object"
)

// vms are the VMs of the simulated provider, and what becomes of them without a call.
type vms struct {
	*ground
	*region
	kubelets  *kubelets
	names     map[string]string     // every VM that ever was, with its machine's name
	born      map[string]time.Time  // when a machine's VM was made
	made      map[string]time.Time  // when a VM was
	added     []drivertest.MemoryVM // since the last look, in the order of their creation
	missing   []string              // VMs that were removed since the last look
	collected int                   // VMs that were deleted as orphans
}

func newVMs(k *kubelets) *vms {
	v := &vms{
		ground: k.ground, region: k.region, kubelets: k,
		names: map[string]string{}, born: map[string]time.Time{}, made: map[string]time.Time{},
	}
	v.provider.Watch(v.note)
	return v
}

// note keeps a change of the provider's VMs for the next look.
func (v *vms) note(vm drivertest.MemoryVM, gone bool) {
	if gone {
		v.missing = append(v.missing, vm.ID)
	} else {
		v.added = append(v.added, vm)
	}
}

// vmGone: the VM of a node is gone, by its ID. Its pods are still as they were.
type vmGone struct{ node, id string }

// AddOrphanVM makes an orphan VM in the cluster of the fleet, under the name of some machine. It
// returns the VM's ID.
func (v *vms) AddOrphanVM(name string) string {
	id := v.provider.Add(drivertest.MemoryVM{Name: name, Cluster: clusterName, Size: "small", Initialized: true})
	v.orphanVMs[id] = true
	v.lookAtVMs()
	v.check()
	return id
}

// OrphanVMs returns how many of the VMs that AddOrphanVM made are left.
func (v *vms) OrphanVMs() (n int) {
	for _, vm := range v.provider.VMs() {
		if v.orphanVMs[vm.ID] {
			n++
		}
	}
	return n
}

// vanish removes a VM one day, with probability Faults.LostVM.
func (v *vms) vanish(id string) {
	if !v.happens(v.hazards.LostVM) {
		return
	}
	v.After(v.upTo(time.Hour), func() {
		if v.faultsStopped || !v.provider.Remove(id) {
			return
		}
		v.count(VMLost)
		v.lookAtVMs()
		v.check()
	})
}

// lookAtVMs boots new VMs, and makes the nodes of VMs that are gone silent. It never sees one that came
// and went since the last look.
func (v *vms) lookAtVMs() {
	v.changed()
	added, missing := v.added, v.missing
	v.added, v.missing = nil, nil
	for _, vm := range added {
		if _, known := v.names[vm.ID]; !known && !slices.Contains(missing, vm.ID) {
			v.know(vm.Name, vm.ID, vm.Size)
			v.kubelets.boot(vm.Name, vm.ID)
			v.vanish(vm.ID)
		}
	}
	slices.Sort(missing) // so that chance decides the same way each time
	for _, id := range missing {
		if name, known := v.names[id]; known {
			v.gone(name, id)
		}
	}
}

// know records a VM that is new.
func (v *vms) know(name, id, size string) {
	v.names[id] = name
	v.born[name], v.made[id], v.zoneOf[id] = v.Now(), v.Now(), size
}

// found adds the VM of a machine that there was before the world began, and returns its ID.
func (v *vms) found(name, size string) (id string) {
	id = v.provider.Add(drivertest.MemoryVM{Name: name, Cluster: clusterName, Size: size, Initialized: true})
	v.know(name, id, size)
	return id
}

// gone makes the node of a VM silent that no longer exists.
func (v *vms) gone(name, id string) {
	v.removed[id] = true
	if n, err := v.kubelets.nodes.Get(context.Background(), object.Key{Name: name}); err == nil && v.kubelets.vmOf(n) == id {
		v.emit(vmGone{name, id})
		v.kubelets.apps.Lost(name)
	}
	v.After(30*time.Second, func() { v.kubelets.silence(name, id) })
}
