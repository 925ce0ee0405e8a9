package manager

import (
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Indexes that a manager lists by.
const (
	// IndexOwner holds an object under OwnerValue.
	IndexOwner = index.Owner
	// IndexNamespace holds a set or deployment under its namespace.
	IndexNamespace = index.Namespace
	// IndexClass holds a machine, and a set, deployment or pool by its template,
	// under the key of its class.
	IndexClass = index.Class
	// IndexNode holds a machine under the name of its node or, if that is not
	// known, under a value made from the machine's name.
	IndexNode = index.Node
	// IndexVM holds a machine and a node under its provider ID, if it has one,
	// and a pool under the provider IDs of its instances.
	IndexVM = index.VM
	// IndexSecret holds a class under the key of each secret it refers to.
	IndexSecret = index.Secret
	// IndexMachine holds a node under the name of the machine that its label names.
	IndexMachine = index.Machine
)

// OwnerValue returns the value under which IndexOwner holds an object: the UID of its owner, or one value
// for all objects of a namespace without an owner.
func OwnerValue(m *object.Meta) string { return index.OwnerOf(m) }

// nodeOf returns the value of IndexNode for a machine whose node's name is not known.
func nodeOf(machine string) string { return "node of " + machine }

func owner(m *object.Meta) []string { return []string{OwnerValue(m)} }

// MachineIndexes are the indexes that a collection of machines must support.
func MachineIndexes() map[store.Index]func(*machine.Machine) []string {
	return map[store.Index]func(*machine.Machine) []string{
		IndexOwner: func(m *machine.Machine) []string { return owner(&m.Meta) },
		IndexClass: func(m *machine.Machine) []string { return index.ClassValues(m.Namespace, &m.Spec.Class) },
		IndexNode: func(m *machine.Machine) []string {
			if m.Spec.NodeName == "" {
				return []string{nodeOf(m.Name)}
			}
			return []string{m.Spec.NodeName}
		},
		IndexVM: func(m *machine.Machine) []string {
			if m.Spec.ProviderID == "" {
				return nil
			}
			return []string{m.Spec.ProviderID}
		},
	}
}

// SetIndexes are the indexes that a collection of sets must support.
func SetIndexes() map[store.Index]func(*machineset.Set) []string {
	return map[store.Index]func(*machineset.Set) []string{
		IndexOwner:     func(s *machineset.Set) []string { return owner(&s.Meta) },
		IndexNamespace: func(s *machineset.Set) []string { return []string{s.Namespace} },
		IndexClass:     func(s *machineset.Set) []string { return index.ClassValues(s.Namespace, &s.Spec.Template.Spec.Class) },
	}
}

// DeploymentIndexes are the indexes that a collection of deployments must support.
func DeploymentIndexes() map[store.Index]func(*deployment.Deployment) []string {
	return map[store.Index]func(*deployment.Deployment) []string{
		IndexNamespace: func(d *deployment.Deployment) []string { return []string{d.Namespace} },
		IndexClass: func(d *deployment.Deployment) []string {
			return index.ClassValues(d.Namespace, &d.Spec.Template.Spec.Class)
		},
	}
}

// ClassIndexes are the indexes that a collection of classes must support.
func ClassIndexes() map[store.Index]func(*machine.Class) []string {
	return map[store.Index]func(*machine.Class) []string{
		IndexSecret: func(c *machine.Class) []string {
			var keys []string
			for _, ref := range []*object.Key{c.SecretRef, c.CredentialsRef} {
				if ref != nil {
					keys = append(keys, secretKey(c, ref).String())
				}
			}
			return keys
		},
	}
}

// NodeIndexes are the indexes that a collection of nodes must support; label
// is machine.Keys.NodeMachine.
func NodeIndexes(label string) map[store.Index]func(*machine.Node) []string {
	return map[store.Index]func(*machine.Node) []string{
		IndexMachine: func(n *machine.Node) []string {
			if name := n.Labels[label]; name != "" {
				return []string{name}
			}
			return nil
		},
		IndexVM: func(n *machine.Node) []string {
			if n.ProviderID != "" {
				return []string{n.ProviderID}
			}
			return nil
		},
	}
}

// PoolIndexes are the indexes that a collection of pools must support.
func PoolIndexes() map[store.Index]func(*machinepool.Pool) []string {
	return map[store.Index]func(*machinepool.Pool) []string{
		IndexClass: func(p *machinepool.Pool) []string { return index.ClassValues(p.Namespace, &p.Spec.Template.Class) },
		IndexVM:    func(p *machinepool.Pool) []string { return p.Spec.ProviderIDs },
	}
}

// classKey returns the key of a machine's class, which is in the machine's namespace.
func classKey(m *machine.Machine) object.Key { return index.ClassKey(m) }

// secretKey returns the key of a secret that a class refers to.
func secretKey(c *machine.Class, ref *object.Key) object.Key { return index.SecretKey(c, ref) }
