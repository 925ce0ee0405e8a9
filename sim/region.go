package sim

import (
	"strings"
	"time"

	"github.com/millwright-go/millwright/driver/drivertest"
)

// clusterName is the cluster that all VMs of the fleet are in.
const clusterName = "blue"

// region is where the provider has its VMs. Each class is in a zone of its own.
type region struct {
	*ground
	provider *drivertest.Memory
	zones    []string             // by name of their class, in the order of its making
	dark     map[string]time.Time // until when a zone is out
	zoneOf   map[string]string    // of a VM
	removed  map[string]bool      // VMs that no longer exist
}

func newRegion(g *ground, o drivertest.MemoryOptions) *region {
	return &region{
		ground: g, provider: drivertest.NewMemory(o), dark: map[string]time.Time{}, zoneOf: map[string]string{}, removed: map[string]bool{},
	}
}

// isDark reports whether a zone is out.
func (r *region) isDark(zone string) bool { return r.Now().Before(r.dark[zone]) }

// eachIn calls do for each VM of a zone.
func (r *region) eachIn(zone string, do func(name, id string)) {
	for _, vm := range r.provider.VMs() {
		if vm.Size == zone {
			do(vm.Name, vm.ID)
		}
	}
}

// spelled is an identity in another spelling.
func spelled(identity string) string { return strings.ToUpper(identity) + "/" }
