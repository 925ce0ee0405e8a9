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

// work brings a group to its target state. It removes the instances to be removed, then the
// youngest surplus ones, or adds others. The caller has locked the groups.
func (p *Provider) work(g *group) error {
	all, err := p.disk.members(g)
	if err != nil {
		return err
	}
	var kept []VM
	for _, v := range all {
		if !slices.Contains(g.Going, v.ID) {
			kept = append(kept, v)
			continue
		}
		if err := p.lose(g, v); err != nil {
			return err
		}
	}
	size := int(g.Target) + min(int(g.bounds().Surge), g.countOutdated(kept))
	for ; len(kept) > size; kept = kept[:len(kept)-1] {
		if err := p.lose(g, kept[len(kept)-1]); err != nil {
			return err
		}
	}
	for len(kept) < size {
		v, err := p.grow(g, kept)
		if err != nil {
			return err
		}
		kept = append(kept, v)
	}
	return p.settle(g, kept)
}

// settle removes from the lists of a group what no longer exists.
func (p *Provider) settle(g *group, kept []VM) error {
	here := func(id string) bool { return slices.ContainsFunc(kept, func(v VM) bool { return v.ID == id }) }
	awaiting := slices.DeleteFunc(slices.Clone(g.Awaiting), func(id string) bool { return !here(id) })
	if len(g.Going) == 0 && len(awaiting) == len(g.Awaiting) {
		return nil
	}
	g.Going, g.Awaiting = nil, awaiting
	return p.disk.save(g)
}

// lose removes an instance.
func (p *Provider) lose(g *group, v VM) error {
	p.nodes.forget(v)
	err := os.Remove(filepath.Join(p.disk.folderOf(g), v.Machine))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// grow makes an instance beside the existing ones, in the zone with the fewest.
func (p *Provider) grow(g *group, kept []VM) (VM, error) {
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

// leastUsed returns the first of the zones with the fewest VMs, or nothing if there are no zones.
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

// tend does what a provider does by itself: it replaces lost instances, and outdated ones within the
// group's bounds. It removes an outdated one when it is said to be drained.
func (p *Provider) tend() error {
	return p.disk.locked(func() error {
		all, err := p.disk.groups()
		for _, g := range all {
			err = errors.Join(err, p.work(g), p.renew(g))
		}
		return err
	})
}

func (p *Provider) renew(g *group) error {
	all, err := p.disk.members(g)
	atWork := slices.DeleteFunc(all, func(v VM) bool { return time.Now().Before(v.Booted) || slices.Contains(g.Awaiting, v.ID) })
	spare := len(atWork) - int(g.Target-min(g.Target, g.bounds().Unavailable))
	var next []string
	for i := range atWork {
		if len(next) < spare && g.outdated(&atWork[i]) {
			next = append(next, atWork[i].ID)
		}
	}
	if err != nil || len(next) == 0 {
		return err
	}
	g.Awaiting = append(g.Awaiting, next...)
	return p.disk.save(g)
}

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

// outdated reports whether an instance differs from what the group makes now.
func (g *group) outdated(v *VM) bool {
	return v.Size != g.Size || v.Node == nil || !v.Node.Equal(&g.Node) || !slices.Contains(g.zones(), v.Zone)
}

// zones returns those that instances can be in.
func (g *group) zones() []string {
	if len(g.Zones) == 0 {
		return []string{""}
	}
	return g.Zones
}

// instances returns those of all groups, by their IDs.
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
