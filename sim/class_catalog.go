package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// classCatalog creates the classes of machines, with their specs for the simulated provider.
type classCatalog struct {
	*cloud
	*stores
	own func(name string) *machine.Class // Options.Class, or nil
}

// AddClass stores a class of the simulated provider, and its secret.
func (c *classCatalog) AddClass(name string) error {
	return c.addClass(c.newClass(object.Key{Namespace: Namespace, Name: name}))
}

// newClass returns a class of the simulated provider, or of Options.Class. Classes with other names
// differ from it.
func (c *classCatalog) newClass(key object.Key) *machine.Class {
	class := c.provider.Class(key, drivertest.MemorySpec{Cluster: clusterName, Size: key.Name})
	if c.own != nil {
		class = c.own(key.Name).Clone()
		class.Meta = object.Meta{Key: key, Labels: class.Labels, Annotations: class.Annotations}
	}
	if class.SecretRef == nil {
		class.SecretRef = &object.Key{Name: "boot"}
	}
	if class.NodeTemplate == nil {
		class.NodeTemplate = &machine.NodeShape{Zone: "zone-" + key.Name}
	}
	return class
}

// groupAccount tells the provider of groups what classes ask for.
type groupAccount struct{ *classCatalog }

// Admit implements groups.Account. Only the user's driver knows what a class of Options.Class asks for,
// so the name of the class is taken as its size.
func (c groupAccount) Admit(class *machine.Class, secret *machine.Secret) (drivertest.MemorySpec, error) {
	if c.own != nil {
		return drivertest.MemorySpec{Cluster: clusterName, Size: class.Name}, nil
	}
	return c.provider.Admit(class, secret)
}

// addClass stores a class, and the secrets that it names.
func (c *classCatalog) addClass(class *machine.Class) error {
	ctx := context.Background()
	c.zones = append(c.zones, class.Name)
	_, err := c.classes.Create(ctx, class)
	for _, ref := range []*object.Key{class.SecretRef, class.CredentialsRef} {
		if ref == nil {
			continue
		}
		key := object.Key{Namespace: cmp.Or(ref.Namespace, class.Namespace), Name: ref.Name}
		if _, exists := c.secrets.Create(ctx, c.provider.Secret(key)); !errors.Is(exists, store.ErrAlreadyExists) {
			err = errors.Join(err, exists)
		}
	}
	return err
}

// TagClass changes the tags of a class, if name equals like. Otherwise it creates a class that differs
// from like in its tags only. The simulated provider can change tags of existing VMs if
// Options.UpdatableTags is set. Classes of Options.Class have no tags, so these are left out.
func (c *classCatalog) TagClass(name, like string, tags map[string]string) error {
	ctx := context.Background()
	class, err := c.classes.Get(ctx, object.Key{Namespace: Namespace, Name: like})
	if err != nil {
		return err
	}
	class = class.Clone()
	if c.own == nil {
		var spec drivertest.MemorySpec
		if err := json.Unmarshal(class.ProviderSpec, &spec); err != nil {
			return err
		}
		spec.Tags = tags
		class.ProviderSpec = spec.Encode()
	}
	if name == like {
		_, err = c.classes.Update(ctx, class)
		return err
	}
	class.Meta = object.Meta{Key: object.Key{Namespace: Namespace, Name: name}}
	_, err = c.classes.Create(ctx, class)
	return err
}

// specOf returns what a class asks of the simulated provider. found is false if there is no such
// class, or it can't be read.
func (c *classCatalog) specOf(class string) (spec drivertest.MemorySpec, found bool) {
	stored, err := c.classes.Get(context.Background(), object.Key{Namespace: Namespace, Name: class})
	if err != nil || json.Unmarshal(stored.ProviderSpec, &spec) != nil {
		return spec, false
	}
	return spec, true
}

// sizeOf returns the zone that a class is in, which is also the size of its VMs.
func (c *classCatalog) sizeOf(class string) string {
	spec, _ := c.specOf(class)
	return spec.Size
}
