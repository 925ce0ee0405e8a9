package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
)

// TestListSpelledOtherwise: of thirty machines whose VMs the provider lists by IDs and names in
// another spelling, while it knows them by both, none loses its VM, and an event says so once. What
// has another name altogether is left alone too, as long as not one of the machines is listed.
func TestListSpelledOtherwise(t *testing.T) {
	const n = 30
	for name, c := range map[string]struct {
		spell func(string) string
		told  string
	}{
		"upper case": {strings.ToUpper, "SpelledOtherwise: class fleet/small lists 30 VMs"},
		"a prefix":   {func(s string) string { return "list:" + s }, "SpelledOtherwise: class fleet/small lists 30 VMs"},
		"a slash":    {func(s string) string { return s + "/" }, "SpelledOtherwise: class fleet/small lists 30 VMs"},
		"other IDs and names": {
			func(s string) string {
				return strings.NewReplacer("memory", "m", "web", "w", "/", "x", "-", "y").Replace(s)
			},
			"UnknownVMsOnly: 30 VMs that class fleet/small lists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := guardedWorld(t)
			l := &liar{Memory: w.provider}
			w.liar = l
			w.fleet()
			w.change(func(d *deployment.Deployment) { d.Spec.Replicas = n })
			p := w.until(w.start(&testkit.Fuse{}, false), w.settled(n), unexpected(t))
			own, ids := w.provider.VMs(), map[string]string{}
			for _, vm := range own {
				ids[c.spell(vm.ID)] = vm.ID
			}
			l.list = func(vms map[string]string) (*listResponse, error) {
				all := make(map[string]string, len(vms))
				for id, name := range vms {
					all[c.spell(id)] = c.spell(name)
				}
				return &listResponse{Machines: all}, nil
			}
			l.delete = func(m *machine.Machine) bool { // it ignores the spelling
				m.Spec.ProviderID = ids[m.Spec.ProviderID]
				return true
			}
			w.at = w.at.Add(15 * time.Minute)
			require.NoError(t, w.watch(p, manager.KindOrphans, 3*time.Hour))
			require.Equal(t, own, w.provider.VMs())
			require.Equal(t, 1, w.heard(c.told), "%v", w.story)
		})
	}
}
