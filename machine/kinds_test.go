package machine_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// No verb shows the data of a secret, whatever value holds the secret.
func TestSecretsAreNotPrinted(t *testing.T) {
	const hidden = "hunter2"
	s := machine.Secret{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "cloud"}},
		Data: map[string][]byte{"password": []byte(hidden)},
	}
	numbers := fmt.Sprint([]byte(hidden)) // how bytes are printed: [104 117 …]
	for _, held := range []any{
		s, &s, []machine.Secret{s}, []*machine.Secret{&s}, map[string]machine.Secret{"a": s},
		struct{ Secret machine.Secret }{s}, struct{ Secret *machine.Secret }{&s}, struct{ machine.Secret }{s},
		&struct{ Any any }{s}, &struct{ Any any }{&s}, error(secretError{s}),
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			text := fmt.Sprintf(verb, held)
			assert.NotContains(t, text, hidden, "%s of %T", verb, held)
			assert.NotContains(t, text, numbers[1:len(numbers)-1], "%s of %T", verb, held)
			assert.NotContains(t, text, fmt.Sprintf("%x", hidden), "%s of %T", verb, held)
			assert.NotContains(t, text, "0x68, 0x75", "%s of %T", verb, held)
		}
	}
	assert.Equal(t, "secret fleet/cloud", fmt.Sprint(s))
	assert.Equal(t, "secret fleet/cloud", s.String())
	var none *machine.Secret
	assert.Equal(t, "<nil>", fmt.Sprint(none))
}

// slog writes only the name of a secret, with either handler.
// Invariants: P42
func TestSecretsAreNotLogged(t *testing.T) {
	s := machine.Secret{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "cloud"}},
		Data: map[string][]byte{"password": []byte("hunter2")},
	}
	for _, held := range []any{s, &s} {
		var text, encoded bytes.Buffer
		for out, handler := range map[*bytes.Buffer]slog.Handler{
			&text: slog.NewTextHandler(&text, nil), &encoded: slog.NewJSONHandler(&encoded, nil),
		} {
			log := slog.New(handler)
			log.Info("read", "secret", held, slog.Group("of", slog.Any("class", held)))
			log.With("secret", held).Info("read")
			assert.Equal(t, 3, strings.Count(out.String(), "secret fleet/cloud"), out)
			for _, hidden := range []string{"hunter2", base64.StdEncoding.EncodeToString([]byte("hunter2")), "password"} {
				assert.NotContains(t, out.String(), hidden)
			}
		}
	}
}

// Unshaped returns what an autoscaler needs and the class lacks. The class is valid nevertheless.
func TestUnshaped(t *testing.T) {
	c := &machine.Class{}
	assert.Empty(t, c.Unshaped(), "nothing for an autoscaler: none is meant to use it")
	assert.NoError(t, c.Validate())
	c.NodeTemplate = &machine.NodeShape{VirtualCapacity: map[string]string{"example.com/fpga": "1"}, Architecture: "arm64"}
	assert.Empty(t, c.Unshaped(), "virtual capacity and architecture do not count")
	c.NodeTemplate.Zone = "z"
	assert.Equal(t, []string{"capacity", "instance type", "region"}, c.Unshaped())
	c.NodeTemplate = &machine.NodeShape{Capacity: map[string]string{"cpu": "2"}, Region: "r", Zone: "z"}
	assert.Equal(t, []string{"instance type"}, c.Unshaped())
	c.NodeTemplate.InstanceType = "small"
	assert.Empty(t, c.Unshaped())
}

type secretError struct{ Secret machine.Secret }

func (e secretError) Error() string { return fmt.Sprintf("could not use %v", e.Secret) }

// A store that encodes objects as JSON keeps the data of a secret.
func TestSecretsSurviveStores(t *testing.T) {
	s := &machine.Secret{Meta: object.Meta{UID: "u"}, Data: map[string][]byte{"a": []byte("b")}}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	var back machine.Secret
	require.NoError(t, json.Unmarshal(text, &back))
	assert.True(t, s.SpecEqual(&back))
	assert.Equal(t, s.UID, back.UID)
}

// requireClone checks that a clone is equal and shares nothing changeable.
func requireClone[T object.Object[T]](t *rapid.T, o T) {
	c := o.Clone()
	require.True(t, reflect.DeepEqual(o, c), "the copy differs")
	require.True(t, o.SpecEqual(c))
	before := o.Clone()
	blot(reflect.ValueOf(c).Elem())
	require.True(t, reflect.DeepEqual(before, o), "the copy shares something")
}

// blot changes everything that can be reached from v.
func blot(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				blot(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			blot(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			blot(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if v.Type().Elem().Kind() == reflect.Slice {
				blot(v.MapIndex(k))
				continue
			}
			v.SetMapIndex(k, reflect.Zero(v.Type().Elem()))
		}
	case reflect.String:
		v.SetString(v.String() + "blot")
	case reflect.Uint8:
		v.SetUint(v.Uint() + 1)
	default:
	}
}

func TestClonesShareNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requireClone(t, anyMachine(t))
		n, c := anyNode(t), anyClass(t)
		requireClone(t, &n)
		requireClone(t, &c)
		requireClone(t, &machine.Secret{Meta: anyMeta(t, "s"), Data: map[string][]byte{"a": []byte("b"), "c": nil}})
	})
}

// leaves calls visit for each single value in v that can be changed.
func leaves(v reflect.Value, path string, visit func(path string, change func())) {
	switch v.Kind() {
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			visit(path, func() { v.Set(reflect.ValueOf(at.Add(time.Second))) })
			return
		}
		for i := range v.NumField() {
			leaves(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Pointer:
		leaves(v.Elem(), path, visit)
	case reflect.Slice:
		leaves(v.Index(0), path+"[0]", visit)
		visit(path+" shorter", func() { v.Set(v.Slice(0, v.Len()-1)) })
	case reflect.Map:
		key := v.MapKeys()[0]
		visit(path+" shorter", func() { v.SetMapIndex(key, reflect.Value{}) })
		visit(path+" other", func() { v.SetMapIndex(key, reflect.ValueOf("other")) })
	case reflect.String:
		visit(path, func() { v.SetString("other") })
	case reflect.Bool:
		visit(path, func() { v.SetBool(!v.Bool()) })
	case reflect.Uint8:
		visit(path, func() { v.SetUint(v.Uint() + 1) })
	default:
		visit(path, func() { v.SetInt(v.Int() + 1) })
	}
}

// requireSpecEqualSeesAll checks that SpecEqual notices each single change of a spec.
func requireSpecEqualSeesAll[T object.Object[T]](t *testing.T, full T, spec func(T) []any) {
	count := 0
	each := func(o T, visit func(path string, change func())) {
		for i, part := range spec(o) {
			leaves(reflect.ValueOf(part).Elem(), fmt.Sprint(i), visit)
		}
	}
	each(full, func(string, func()) { count++ })
	require.Positive(t, count)
	for wanted := range count {
		c, i := full.Clone(), 0
		each(c, func(path string, change func()) {
			if i == wanted {
				change()
				assert.False(t, full.SpecEqual(c), "%T: a change of %s", full, path)
			}
			i++
		})
	}
}

func TestSpecEqualSeesEveryField(t *testing.T) {
	words := map[string]string{"a": "b"}
	template := machine.NodeTemplate{Labels: words, Annotations: words, Taints: []object.Taint{{Key: "a", Value: "b", Effect: "c"}}}
	requireSpecEqualSeesAll(t, &machine.Machine{Spec: machine.Spec{
		Class: machine.ClassRef{APIGroup: "g", Kind: "k", Name: "n"}, ProviderID: "p", NodeName: "n", NodeTemplate: template,
		Config: machine.Configuration{NodeConditions: []string{"Ready"}},
	}}, func(m *machine.Machine) []any { return []any{&m.Spec} })
	requireSpecEqualSeesAll(t, &machine.Node{
		ProviderID: "p", Taints: template.Taints, Applied: machine.Applied{NodeTemplate: template, VirtualCapacity: words},
	}, func(n *machine.Node) []any { return []any{&n.ProviderID, &n.Unschedulable, &n.Taints, &n.Applied} })
	requireSpecEqualSeesAll(t, &machine.Class{
		Provider: "p", ProviderSpec: []byte("x"), SecretRef: &object.Key{Name: "s"}, CredentialsRef: &object.Key{Name: "c"},
		NodeTemplate: &machine.NodeShape{Capacity: words, VirtualCapacity: words, InstanceType: "t", Zone: "z"},
	}, func(c *machine.Class) []any {
		return []any{&c.Provider, &c.ProviderSpec, &c.SecretRef, &c.CredentialsRef, &c.NodeTemplate}
	})
	assert.False(t, (&machine.Class{}).SpecEqual(&machine.Class{SecretRef: &object.Key{}}))
	assert.False(t, (&machine.Class{}).SpecEqual(&machine.Class{NodeTemplate: &machine.NodeShape{}}))
	none, empty := &machine.Machine{}, &machine.Machine{}
	empty.Spec.NodeTemplate.Labels = map[string]string{}
	assert.True(t, none.SpecEqual(empty), "a nil map is an empty one")
	empty.Spec.Config.NodeConditions = []string{}
	assert.False(t, none.SpecEqual(empty), "an empty list is not nil, which means the policy's")
}

func TestValidate(t *testing.T) {
	key := object.Key{Namespace: "fleet", Name: "m"}
	good := machine.Machine{Meta: object.Meta{Key: key}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}}
	require.NoError(t, good.Validate())
	for want, change := range map[string]func(*machine.Machine){
		"machine: metadata.name must not be empty":                          func(m *machine.Machine) { m.Key = object.Key{} },
		"machine fleet/m: spec.class.name must not be empty":                func(m *machine.Machine) { m.Spec.Class.Name = "" },
		"machine fleet/m: spec.config.maxEvictRetries must not be negative": func(m *machine.Machine) { m.Spec.Config.MaxEvictRetries = -1 },
		"machine fleet/m: spec.config.creationTimeout must not be negative": func(m *machine.Machine) { m.Spec.Config.CreationTimeout = -1 },
		"machine fleet/m: spec.config.healthTimeout must not be negative":   func(m *machine.Machine) { m.Spec.Config.HealthTimeout = -1 },
		"machine fleet/m: spec.config.drainTimeout must not be negative":    func(m *machine.Machine) { m.Spec.Config.DrainTimeout = -1 },
		"machine fleet/m: spec.config.inPlaceTimeout must not be negative":  func(m *machine.Machine) { m.Spec.Config.InPlaceTimeout = -1 },
		"machine fleet/m: spec.inPlace is unknown: Perhaps":                 func(m *machine.Machine) { m.Spec.InPlace = "Perhaps" },
	} {
		m := good.Clone()
		change(m)
		assert.EqualError(t, m.Validate(), want)
		assert.ErrorIs(t, m.Validate(), object.ErrInvalid)
	}
}

func TestClassValidate(t *testing.T) {
	named := &object.Key{Name: "s"}
	for want, c := range map[string]machine.Class{
		"":                                       {SecretRef: named, CredentialsRef: named, NodeTemplate: &machine.NodeShape{}},
		"secretRef.name must not be empty":       {SecretRef: &object.Key{Namespace: "a"}},
		"credentialsSecretRef.name must not be":  {SecretRef: named, CredentialsRef: &object.Key{}},
		"nodeTemplate.virtualCapacity has an en": {NodeTemplate: &machine.NodeShape{VirtualCapacity: map[string]string{"a": ""}}},
	} {
		if want == "" {
			assert.NoError(t, c.Validate())
		} else {
			assert.ErrorContains(t, c.Validate(), want)
		}
	}
}

func TestPolicyValidate(t *testing.T) {
	require.NoError(t, machine.DefaultPolicy().Validate())
	for field, change := range map[string]func(*machine.Policy){
		"policy.creationTimeout": func(p *machine.Policy) { p.CreationTimeout = time.Second - 1 },
		"policy.healthTimeout":   func(p *machine.Policy) { p.HealthTimeout = 1 },
		"policy.drainTimeout":    func(p *machine.Policy) { p.DrainTimeout = -time.Hour },
		"policy.unresponsive":    func(p *machine.Policy) { p.Unresponsive = object.Off },
		"policy.detachTimeout":   func(p *machine.Policy) { p.DetachTimeout = time.Second - 1 },
		"policy.inPlaceTimeout":  func(p *machine.Policy) { p.InPlaceTimeout = -1 },
		"policy.grace":           func(p *machine.Policy) { p.Grace = time.Millisecond },
		"policy.hookTimeout":     func(p *machine.Policy) { p.HookTimeout = -time.Second },
		"policy.quotaRetry":      func(p *machine.Policy) { p.QuotaRetry = time.Millisecond },
	} {
		p := machine.DefaultPolicy()
		change(p)
		assert.ErrorContains(t, p.Validate(), field)
	}
	p := machine.DefaultPolicy()
	p.Grace, p.HookTimeout = object.Off, object.Off
	assert.NoError(t, p.Validate())
}

func TestReadyAndAvailable(t *testing.T) {
	since := epoch.Truncate(time.Second)
	for _, phase := range knownPhases() {
		m := &machine.Machine{Status: machine.Status{Phase: phase, Since: since}}
		ready := phase == machine.PhaseRunning || phase == machine.PhaseAvailable
		assert.Equal(t, ready, m.Ready(), phase)
		assert.Equal(t, !ready, m.AvailableAt(time.Minute).IsZero(), phase)
		if ready {
			assert.Equal(t, since, m.AvailableAt(0))
			assert.Equal(t, since.Add(61*time.Second), m.AvailableAt(time.Minute))
		}
		m.DeletedAt = since
		assert.False(t, m.Ready(), phase)
	}
}

func TestPriority(t *testing.T) {
	m := &machine.Machine{}
	assert.Equal(t, 3, m.Priority("p"))
	for text, want := range map[string]int{"1": 1, "-5": -5, "many": 3, "": 3, "99999999999999999999": 3} {
		m.Annotations = map[string]string{"p": text}
		assert.Equal(t, want, m.Priority("p"), text)
	}
}

// TestConfigurationHasNoNegatives: InvalidField refuses a negative number in each field, so that no deployment
// creates invalid machines.
func TestConfigurationHasNoNegatives(t *testing.T) {
	kind := reflect.TypeFor[machine.Configuration]()
	numbers := 0
	for i := range kind.NumField() {
		field := kind.Field(i)
		var c machine.Configuration
		require.Nil(t, c.InvalidField("config"))
		if v := reflect.ValueOf(&c).Elem().Field(i); v.CanInt() {
			numbers++
			v.SetInt(-1)
			bad := c.InvalidField("config")
			require.NotNil(t, bad, field.Name)
			require.True(t, strings.EqualFold("config."+field.Name, bad.Field), bad.Field)
		}
	}
	require.Positive(t, numbers)
}
