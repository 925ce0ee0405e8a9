package simulated

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// work brings a group to its target state: it removes the instances in g.Removing, and then removes the
// youngest surplus ones or adds new ones. The caller holds the lock of the groups.
func (p *Provider) work(g *group) error {
	all, err := p.disk.members(g)
	if err != nil {
		return err
	}
	var kept []VM
	for _, v := range all {
		if !slices.Contains(g.Removing, v.ID) {
			kept = append(kept, v)
			continue
		}
		if err := p.removeInstance(g, v); err != nil {
			return err
		}
	}
	size := int(g.Target) + min(int(g.bounds().Surge), g.countOutdated(kept)) // during an update, more
	for ; len(kept) > size; kept = kept[:len(kept)-1] {
		if err := p.removeInstance(g, kept[len(kept)-1]); err != nil {
			return err
		}
	}
	for len(kept) < size {
		v, err := p.addInstance(g, kept)
		if err != nil {
			return err
		}
		kept = append(kept, v)
	}
	return p.settle(g, kept)
}

// settle removes instances that no longer exist from the lists of a group.
func (p *Provider) settle(g *group, kept []VM) error {
	here := func(id string) bool { return slices.ContainsFunc(kept, func(v VM) bool { return v.ID == id }) }
	awaiting := slices.DeleteFunc(slices.Clone(g.Draining), func(id string) bool { return !here(id) })
	if len(g.Removing) == 0 && len(awaiting) == len(g.Draining) {
		return nil
	}
	g.Removing, g.Draining = nil, awaiting
	return p.disk.save(g)
}

// removeInstance removes an instance.
func (p *Provider) removeInstance(g *group, v VM) error {
	p.nodes.forget(v)
	err := os.Remove(filepath.Join(p.disk.folderOf(g), v.Machine))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// addInstance creates an instance, in the zone with the fewest of the kept ones.
func (p *Provider) addInstance(g *group, kept []VM) (VM, error) {
	node := g.Node.Clone()
	v := VM{
		Cluster: g.Cluster, Size: g.Size, Zone: leastUsed(g.Zones, kept), Booted: time.Now().Add(p.options.Boot),
		Pool: g.Pool.String(), Node: &node,
	}
	for {
		v.ID, v.Machine = newID(g.Cluster), g.Pool.Name+"-"+strings.ToLower(rand.Text()[:6])
		err := p.disk.place(p.disk.folderOf(g), v)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			p.nodes.expect(v)
		}
		return v, err
	}
}

// leastUsed returns the first zone with the fewest VMs, or "" if there are no zones.
func leastUsed(zones []string, all []VM) string {
	if len(zones) == 0 {
		return ""
	}
	used := map[string]int{}
	for _, v := range all {
		used[v.Zone]++
	}
	return slices.MinFunc(zones, func(a, b string) int { return cmp.Compare(used[a], used[b]) })
}

// tend does what a provider does by itself: it replaces lost instances, and requests the drain of outdated
// ones within the bounds of the group. These are removed when they are reported as drained.
func (p *Provider) tend() error {
	return p.disk.locked(func() error {
		all, err := p.disk.groups()
		for _, g := range all {
			err = errors.Join(err, p.work(g), p.renew(g))
		}
		return err
	})
}

// renew requests the drain of outdated instances, as many as the bounds allow.
func (p *Provider) renew(g *group) error {
	all, err := p.disk.members(g)
	serving := slices.DeleteFunc(all, func(v VM) bool { return time.Now().Before(v.Booted) || slices.Contains(g.Draining, v.ID) })
	spare := len(serving) - int(g.Target-min(g.Target, g.bounds().Unavailable))
	var next []string
	for i := range serving {
		if len(next) < spare && g.outdated(&serving[i]) {
			next = append(next, serving[i].ID)
		}
	}
	if err != nil || len(next) == 0 {
		return err
	}
	g.Draining = append(g.Draining, next...)
	return p.disk.save(g)
}

// bounds returns how far the numbers may differ from the target during an update.
func (g *group) bounds() rollout.Bounds {
	if g.Rolling == nil {
		return rollout.Bounds{Unavailable: 1}
	}
	return g.Rolling.Bounds(g.Target)
}

func (g *group) countOutdated(all []VM) (n int) {
	for i := range all {
		if g.outdated(&all[i]) {
			n++
		}
	}
	return n
}

// outdated reports whether an instance differs from those that the group would create now.
func (g *group) outdated(v *VM) bool {
	return v.Size != g.Size || v.Node == nil || !v.Node.Equal(&g.Node) || !slices.Contains(g.zones(), v.Zone)
}

// zones returns the zones that instances may be in.
func (g *group) zones() []string {
	if len(g.Zones) == 0 {
		return []string{""}
	}
	return g.Zones
}

// instances returns the instances of all groups, by ID.
func (d disk) instances() (map[string]VM, error) {
	found := map[string]VM{}
	all, err := d.groups()
	for _, g := range all {
		members, failed := d.members(g)
		err = errors.Join(err, failed)
		maps.Insert(found, func(yield func(string, VM) bool) {
			for _, v := range members {
				if !yield(v.ID, v) {
					return
				}
			}
		})
	}
	return found, err
}
