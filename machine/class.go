package machine

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millwright-go/millwright/object"
)

// UserData is the key, in the boot secret (Class.SecretRef), of what a VM runs at its first boot.
const UserData = "userData"

// Class is the blueprint of machines: their provider, its spec, and its credentials. A change of a class changes
// existing machines only in fields that the driver can update.
type Class struct {
	object.Meta
	// Provider is the name of a driver. Drivers decide whether they accept an empty one.
	Provider string
	// ProviderSpec is the provider's own spec of a VM, opaque here.
	ProviderSpec []byte
	// NodeTemplate describes a node of this class to autoscalers, before one exists.
	NodeTemplate *NodeShape
	// SecretRef names the boot secret, CredentialsRef the provider's credentials. Drivers get both merged;
	// the data of CredentialsRef wins.
	SecretRef      *object.Key
	CredentialsRef *object.Key
}

// NodeShape describes the nodes of a class. Quantities are in Kubernetes' notation and opaque here.
type NodeShape struct {
	Capacity        map[string]string // cpu, memory, gpu
	VirtualCapacity map[string]string // extended resources, applied to the node
	InstanceType    string
	Region          string
	Zone            string
	Architecture    string
}

// Clone implements object.Object.
func (c *Class) Clone() *Class {
	d := *c
	d.Meta = c.CloneMeta()
	d.ProviderSpec = bytes.Clone(c.ProviderSpec)
	d.SecretRef = cloneKey(c.SecretRef)
	d.CredentialsRef = cloneKey(c.CredentialsRef)
	if c.NodeTemplate != nil {
		shape := *c.NodeTemplate
		shape.Capacity = maps.Clone(shape.Capacity)
		shape.VirtualCapacity = maps.Clone(shape.VirtualCapacity)
		d.NodeTemplate = &shape
	}
	return &d
}

// CopyStatus implements object.Object; a class has no status.
func (c *Class) CopyStatus(*Class) {}

// SpecEqual implements object.Object.
func (c *Class) SpecEqual(d *Class) bool {
	return c.Provider == d.Provider && bytes.Equal(c.ProviderSpec, d.ProviderSpec) &&
		sameKey(c.SecretRef, d.SecretRef) && sameKey(c.CredentialsRef, d.CredentialsRef) &&
		c.NodeTemplate.equal(d.NodeTemplate)
}

func (s *NodeShape) equal(t *NodeShape) bool {
	if s == nil || t == nil {
		return s == t
	}
	return maps.Equal(s.Capacity, t.Capacity) && maps.Equal(s.VirtualCapacity, t.VirtualCapacity) &&
		s.InstanceType == t.InstanceType && s.Region == t.Region && s.Zone == t.Zone &&
		s.Architecture == t.Architecture
}

// Validate returns an *object.FieldError for the first field with which no machine can be created.
func (c *Class) Validate() error {
	switch {
	case c.SecretRef != nil && c.SecretRef.Name == "":
		return object.Invalid("secretRef.name", "must not be empty").Of("class", c.Key)
	case c.CredentialsRef != nil && c.CredentialsRef.Name == "":
		return object.Invalid("credentialsSecretRef.name", "must not be empty").Of("class", c.Key)
	}
	if c.NodeTemplate == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.NodeTemplate.VirtualCapacity)) {
		quantity := c.NodeTemplate.VirtualCapacity[name]
		if name == "" || quantity == "" {
			return object.Invalid("nodeTemplate.virtualCapacity", "has an entry without name or quantity").Of("class", c.Key)
		}
		if problem := resourceProblem(name, quantity); problem != "" {
			return entryError("nodeTemplate.virtualCapacity", name, problem).Of("class", c.Key)
		}
	}
	return nil
}

// Unshaped returns which of capacity, instance type, region and zone the node template lacks. An autoscaler
// needs all of them to scale a class up from zero. It returns nil if all are there, or none: then no
// autoscaler is to scale it. Machines are created from the class in any case.
func (c *Class) Unshaped() (missing []string) {
	var t NodeShape
	if c.NodeTemplate != nil {
		t = *c.NodeTemplate
	}
	parts := [...]struct {
		name  string
		there bool
	}{
		{"capacity", len(t.Capacity) > 0}, {"instance type", t.InstanceType != ""},
		{"region", t.Region != ""}, {"zone", t.Zone != ""},
	}
	for _, part := range parts {
		if !part.there {
			missing = append(missing, part.name)
		}
	}
	if len(missing) == len(parts) {
		return nil
	}
	return missing
}

// Secret holds confidential data. Printing one with any verb, or logging it with slog, shows only its name.
//
// Two uses are not protected. Encoders such as encoding/json write the data, because stores need it: do not give
// a value that holds a secret to a logger that encodes values. And fmt calls no method of an unexported field:
// do not print a struct that has a secret in one.
type Secret struct {
	object.Meta
	Data map[string][]byte
}

// String returns the secret's name.
func (s Secret) String() string { return "secret " + s.Key.String() }

// Format writes what String returns, for any verb. It has a value receiver, so that it also applies to a Secret
// inside another value.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// Clone implements object.Object.
func (s *Secret) Clone() *Secret {
	c := &Secret{Meta: s.CloneMeta()}
	if s.Data != nil {
		c.Data = make(map[string][]byte, len(s.Data))
		for k, v := range s.Data {
			c.Data[k] = bytes.Clone(v)
		}
	}
	return c
}

// CopyStatus implements object.Object; a secret has no status.
func (s *Secret) CopyStatus(*Secret) {}

// SpecEqual implements object.Object.
func (s *Secret) SpecEqual(t *Secret) bool { return maps.EqualFunc(s.Data, t.Data, bytes.Equal) }

func cloneKey(k *object.Key) *object.Key {
	if k == nil {
		return nil
	}
	c := *k
	return &c
}

func sameKey(a, b *object.Key) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Kubernetes' limits on the metadata of a node. The API server rejects a node with one invalid entry as a whole,
// so no machine with such a template would ever run.
const (
	maxName        = 63      // bytes of a name, and of a label's value
	maxPrefix      = 253     // bytes of a key's prefix
	maxAnnotations = 1 << 18 // bytes of all keys and values of annotations
)

// InvalidEntry returns the first entry that no API server accepts on a node, or nil; at is the path
// of the template, as in "spec.nodeTemplate". Creations wait until it is corrected. On nodes that
// exist, the other entries are kept up to date.
//
//   - The keys of labels, annotations and taints are qualified names: at most 63 letters, digits and
//     "-_." that begin and end with a letter or digit, perhaps after a DNS subdomain of at most 253
//     bytes and a slash.
//   - Values of labels and taints are empty, or like such a name without a prefix.
//   - Annotations have at most 256 KiB together.
//   - Taints have a known effect, and differ in their keys or effects.
func (t *NodeTemplate) InvalidEntry(at string) *object.FieldError {
	if t.valid() {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		if problem := labelProblem(key, t.Labels[key]); problem != "" {
			return entryError(at+".labels", key, problem)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Annotations)) {
		if problem := annotationKeyProblem(key); problem != "" {
			return entryError(at+".annotations", key, problem)
		}
	}
	if size := annotationBytes(t.Annotations); size > maxAnnotations {
		return object.Invalid(at+".annotations", "must have at most "+strconv.Itoa(maxAnnotations)+" bytes together, and have "+strconv.Itoa(size))
	}
	for i := range t.Taints {
		if problem := taintProblem(t.Taints, i); problem != "" {
			return object.Invalid(at+".taints["+strconv.Itoa(i)+"]", problem)
		}
	}
	return nil
}

func entryError(field, key, problem string) *object.FieldError {
	return object.Invalid(field+"["+strconv.Quote(shortened(key))+"]", problem)
}

// shortened returns a key for a message, cut if it is long.
func shortened(key string) string {
	if len(key) > maxPrefix {
		return key[:maxPrefix]
	}
	return key
}

// valid reports whether all entries are valid. It allocates nothing, because it runs in each pass of a settled
// machine.
func (t *NodeTemplate) valid() bool {
	for key, value := range t.Labels {
		if labelProblem(key, value) != "" {
			return false
		}
	}
	for key := range t.Annotations {
		if annotationKeyProblem(key) != "" {
			return false
		}
	}
	for i := range t.Taints {
		if taintProblem(t.Taints, i) != "" {
			return false
		}
	}
	return annotationBytes(t.Annotations) <= maxAnnotations
}

// usable returns the template without entries that no API server accepts. If the annotations are too large
// together, it has none.
func (t *NodeTemplate) usable() NodeTemplate {
	if t.valid() {
		return *t
	}
	u := t.Clone()
	maps.DeleteFunc(u.Labels, func(key, value string) bool { return labelProblem(key, value) != "" })
	maps.DeleteFunc(u.Annotations, func(key, _ string) bool { return annotationKeyProblem(key) != "" })
	if annotationBytes(u.Annotations) > maxAnnotations {
		u.Annotations = nil
	}
	u.Taints = nil
	for i := range t.Taints {
		if taintProblem(t.Taints, i) == "" {
			u.Taints = append(u.Taints, t.Taints[i])
		}
	}
	return u
}

func annotationBytes(m map[string]string) (n int) {
	for key, value := range m {
		n += len(key) + len(value)
	}
	return n
}

const (
	problemKey      = `must be a name of at most 63 letters, digits, "-", "_" and ".", perhaps after a DNS subdomain and "/"`
	problemValue    = `must have a value that is empty or has at most 63 letters, digits, "-", "_" and "."; it begins and ends with a letter or digit`
	problemEffect   = "must have effect NoSchedule, PreferNoSchedule or NoExecute"
	problemTwice    = "must not have the key and the effect of an earlier taint"
	problemQuantity = "must be a quantity that is not negative, such as 2 or 500Mi"
)

func labelProblem(key, value string) string {
	switch {
	case !qualified(key):
		return problemKey
	case value != "" && !isName(value):
		return problemValue
	}
	return ""
}

// annotationKeyProblem returns what is wrong with a key, whose prefix may have capital letters.
func annotationKeyProblem(key string) string {
	if prefix, name, found := strings.Cut(key, "/"); found {
		if isName(name) && subdomain(prefix, true) {
			return ""
		}
		return problemKey
	}
	if !isName(key) {
		return problemKey
	}
	return ""
}

// taintProblem returns what is wrong with the ith taint.
func taintProblem(taints []object.Taint, i int) string {
	t := &taints[i]
	if problem := labelProblem(t.Key, t.Value); problem != "" {
		return problem
	}
	switch t.Effect {
	case object.NoSchedule, object.PreferNoSchedule, object.NoExecute:
	default:
		return problemEffect
	}
	if slices.ContainsFunc(taints[:i], t.Same) {
		return problemTwice
	}
	return ""
}

// qualified reports whether a key is a name, perhaps with a prefix.
func qualified(key string) bool {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		return isName(key)
	}
	return isName(name) && subdomain(prefix, false)
}

// isName reports whether a text is the name of a key, or a value of a label that is not empty.
func isName(s string) bool {
	if s == "" || len(s) > maxName || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// subdomain reports whether a text is a DNS subdomain (RFC 1123). capitals says that it may have capital
// letters.
func subdomain(s string, capitals bool) bool {
	if s == "" || len(s) > maxPrefix {
		return false
	}
	begins := true
	for i := range len(s) {
		c, ends := s[i], i == len(s)-1 || s[i+1] == '.'
		switch {
		case c == '.' && !begins:
			if begins = true; i == len(s)-1 {
				return false
			}
			continue
		case alphanumeric(c) && (capitals || c < 'A' || c > 'Z'):
		case c == '-' && !begins && !ends:
		default:
			return false
		}
		begins = false
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// resourceProblem returns what is wrong with an entry of a virtual capacity.
func resourceProblem(name, quantity string) string {
	switch {
	case !qualified(name):
		return problemKey
	case !isQuantity(quantity):
		return problemQuantity
	}
	return ""
}

// isQuantity reports whether a text is a quantity in Kubernetes' notation that is not negative: decimal
// digits, perhaps with a fraction, and perhaps with a suffix or an exponent.
func isQuantity(s string) bool {
	s = strings.TrimPrefix(s, "+")
	whole, rest := digits(s)
	fraction := ""
	if after, found := strings.CutPrefix(rest, "."); found {
		fraction, rest = digits(after)
	}
	if whole == "" && fraction == "" {
		return false
	}
	switch rest {
	case "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei":
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	exponent := strings.TrimPrefix(rest[1:], "-")
	if exponent == rest[1:] {
		exponent = strings.TrimPrefix(exponent, "+")
	}
	number, end := digits(exponent)
	return number != "" && end == ""
}

// digits cuts the digits at the beginning of a text.
func digits(s string) (number, rest string) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n], s[n:]
}
