package sim

import (
	"context"
	"maps"
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
	names     map[string]string    // every VM that ever was, with its machine's name
	born      map[string]time.Time // when a machine's VM was made
	made      map[string]time.Time // when a VM was
	collected int                  // VMs that were deleted as orphans
}

func newVMs(k *kubelets) *vms {
	return &vms{
		ground: k.ground, region: k.region, kubelets: k,
		names: map[string]string{}, born: map[string]time.Time{}, made: map[string]time.Time{},
	}
}

// vmGone: the VM of a node is gone, and so many pods ran on it.
type vmGone struct {
	node    string
	running int
}

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
	v.clock.after(v.upTo(time.Hour), func() {
		if v.faultsStopped || !v.provider.Remove(id) {
			return
		}
		v.count(VMLost)
		v.lookAtVMs()
		v.check()
	})
}

// lookAtVMs boots new VMs, and makes the nodes of VMs that are gone silent.
func (v *vms) lookAtVMs() {
	v.changed()
	alive := map[string]bool{}
	for _, vm := range v.provider.VMs() {
		alive[vm.ID] = true
		if _, known := v.names[vm.ID]; !known {
			v.names[vm.ID] = vm.Name
			v.born[vm.Name], v.made[vm.ID], v.zoneOf[vm.ID] = v.clock.now, v.clock.now, vm.Size
			v.kubelets.boot(vm.Name, vm.ID)
			v.vanish(vm.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.names)) { // sorted, so that chance decides the same way each time
		name := v.names[id]
		if !alive[id] && !v.removed[id] {
			v.removed[id] = true
			if n, err := v.kubelets.nodes.Get(context.Background(), object.Key{Name: name}); err == nil && n.ProviderID == id {
				v.emit(vmGone{name, v.kubelets.apps.running(name)})
				v.kubelets.apps.lost(name)
			}
			v.clock.after(30*time.Second, func() { v.kubelets.silence(name, id) })
		}
	}
}
