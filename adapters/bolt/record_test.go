package bolt_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// anyText generates strings, also invalid UTF-8 and characters that JSON escapes.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "\xff", "a\xc3", "\ufffd", `\ufffd`, "<&>\"\\\x00\u2028", "ß"}),
		rapid.String(),
	)
}

// anyTime generates times in several zones, also the zero time.
func anyTime() *rapid.Generator[time.Time] {
	zones := []*time.Location{
		time.UTC, time.Local, time.FixedZone("", 3600), time.FixedZone("mean time", 3208), time.FixedZone("", -86399),
	}
	return rapid.Custom(func(t *rapid.T) time.Time {
		at := time.Time{}
		if rapid.Bool().Draw(t, "set") {
			at = time.Unix(rapid.Int64Range(-50_000_000_000, 200_000_000_000).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond"))
		}
		return at.In(rapid.SampledFrom(zones).Draw(t, "zone"))
	})
}

// anyOf generates objects with any fields that can be written as JSON.
func anyOf[V any]() *rapid.Generator[V] {
	code := rapid.Map(rapid.IntRange(0, 16), func(n int) codes.Code { return codes.Code(n) })
	share := rapid.Custom(func(t *rapid.T) rollout.IntOrPercent {
		return rollout.IntOrPercent{Value: rapid.Int32Range(0, math.MaxInt32).Draw(t, "value"), Percent: rapid.Bool().Draw(t, "percent")}
	})
	types := map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[time.Time]():            anyTime().AsAny(),
		reflect.TypeFor[codes.Code]():           code.AsAny(),
		reflect.TypeFor[rollout.IntOrPercent](): share.AsAny(),
	}
	kinds := map[reflect.Kind]*rapid.Generator[any]{reflect.String: anyText().AsAny()}
	return rapid.MakeCustom[V](rapid.MakeConfig{Types: types, Kinds: kinds})
}

// requireLossless requires that an object is read as the write has returned it. If its text is UTF-8, that
// is the object that was written.
func requireLossless[V any, T interface {
	*V
	object.Object[T]
}](t *testing.T) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		value := anyOf[V]().Draw(t, "object")
		o := T(&value)
		meta := o.ObjectMeta()
		meta.Key = object.Key{Namespace: rapid.String().Draw(t, "namespace"), Name: rapid.StringN(1, 20, -1).Draw(t, "name")}
		meta.UID, meta.Version = "uid", "7"
		given := o.Clone()
		key, record, same, err := bolt.Record(o)
		require.NoError(t, err)
		read, damaged := bolt.FromRecord[T](key, record)
		require.Nil(t, damaged)
		require.Equal(t, same, read)
		require.True(t, reflect.DeepEqual(same, read), "nil or a time zone differs")
		if same == o {
			require.True(t, given.SpecEqual(read))
			require.Equal(t, asText(t, given), asText(t, read))
		}
	})
}

// asText returns the JSON in the record of an object.
func asText[T object.Object[T]](t require.TestingT, o T) string {
	_, record, _, err := bolt.Record(o)
	require.NoError(t, err)
	return string(record[5:])
}

// TestLossless checks requireLossless for all kinds.
func TestLossless(t *testing.T) {
	t.Run("machine", func(t *testing.T) { requireLossless[machine.Machine](t) })
	t.Run("class", func(t *testing.T) { requireLossless[machine.Class](t) })
	t.Run("secret", func(t *testing.T) { requireLossless[machine.Secret](t) })
	t.Run("node", func(t *testing.T) { requireLossless[machine.Node](t) })
	t.Run("set", func(t *testing.T) { requireLossless[machineset.Set](t) })
	t.Run("deployment", func(t *testing.T) { requireLossless[deployment.Deployment](t) })
	t.Run("pool", func(t *testing.T) { requireLossless[machinepool.Pool](t) })
}

// TestTimesKeepTheirInstant: times in other zones are read as the same instants, and the zero time as
// zero, even if RFC 3339 can't express the offset.
func TestTimesKeepTheirInstant(t *testing.T) {
	meanTime := time.FixedZone("LMT", 3208)
	m := newMachine("a")
	m.UID, m.Version = "uid", "1"
	m.Status.Since = time.Time{}.In(meanTime)
	m.Status.ClockFrom = now().In(meanTime)
	key, record, _, err := bolt.Record(m)
	require.NoError(t, err)
	read, damaged := bolt.FromRecord[*machine.Machine](key, record)
	require.Nil(t, damaged)
	require.True(t, read.Status.Since.IsZero())
	require.True(t, read.Status.ClockFrom.Equal(now()))
}

// TestInvalidObjects: an object that can't be written is store.ErrInvalid, and the error has the reason.
func TestInvalidObjects(t *testing.T) {
	c := open(t, newPath(t))
	for name, change := range map[string]func(*deployment.Deployment){
		"name is not UTF-8": func(d *deployment.Deployment) { d.Name = "a\xff" },
		"name is longer":    func(d *deployment.Deployment) { d.Name = strings.Repeat("a", 40_000) },
		"IntOrPercent":      func(d *deployment.Deployment) { d.Spec.Strategy.MaxSurge.Value = -1 },
	} {
		d := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "a"}}}
		change(d)
		_, err := c.Deployments().Create(noContext, d)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "create fleet/a")
	}
	listed, err := c.Deployments().List(noContext, store.Query{})
	require.NoError(t, err)
	require.Empty(t, listed)
}

// fill sets every field to a value that is not zero. n counts the fields, so that most values differ.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString("text" + string(rune('a'+*n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(uint64(*n % 15))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(now().Truncate(time.Second).Add(time.Duration(*n) * time.Second)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	}
}

// TestRecordsKeepTheirForm: the golden files have the JSON of an object of each kind with every field
// set. If a field of a released layout is renamed or removed, Open must rewrite old files; if a field is
// added, raise the layout.
func TestRecordsKeepTheirForm(t *testing.T) {
	requireForm[*machine.Machine](t, "machine")
	requireForm[*machine.Class](t, "class")
	requireForm[*machine.Secret](t, "secret")
	requireForm[*machine.Node](t, "node")
	requireForm[*machineset.Set](t, "set")
	requireForm[*deployment.Deployment](t, "deployment")
	requireForm[*machinepool.Pool](t, "pool")
}

// requireForm compares the record of an object with its golden file.
func requireForm[T object.Object[T]](t *testing.T, name string) {
	t.Helper()
	n := 0
	value := reflect.New(reflect.TypeFor[T]().Elem())
	fill(value.Elem(), &n)
	o, _ := value.Interface().(T)
	key, record, _, err := bolt.Record(o)
	require.NoError(t, err)
	var lines bytes.Buffer
	require.NoError(t, json.Indent(&lines, record[5:], "", "  "))
	testkit.Golden(t, filepath.Join("testdata", name+".json"), lines.String()+"\n")
	read, damaged := bolt.FromRecord[T](key, bolt.NewRecord(key, record[5:]))
	require.Nil(t, damaged)
	require.Equal(t, o, read)
	requireFilled(t, name, reflect.ValueOf(read).Elem())
}

// requireFilled requires that no field is zero: each was read from the record.
func requireFilled(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	require.False(t, v.IsZero(), "%s is not in the record", path)
	if v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]() {
		for i := range v.NumField() {
			requireFilled(t, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
}

// FuzzRecord: any bytes give an object or a damage. The object of a record can be written and read again,
// and is the same then.
func FuzzRecord(f *testing.F) {
	// The seeds are small, because the fuzzer spends its time on shrinking what it finds.
	key, content := []byte("\x01na"), []byte(`{"Name":"a","Namespace":"n","UID":"u","Version":"1","CreatedAt":"2031-05-07T11:13:17Z"}`)
	f.Add(key, bolt.NewRecord(key, content), false)
	f.Add(key, content, true)
	f.Add(key, []byte(`{"Name":"a","Namespace":"n","UID":"u","Version":"1","Spec":{"Config":{"NodeConditions":[]}},"Status":{"LastOperation":{"Code":"Internal"}}}`), true)
	f.Add([]byte{}, []byte{}, false)
	f.Add([]byte{200}, []byte("null"), true)
	f.Add([]byte("\x05fleeta"), []byte(`{"Name":"a","Namespace":"fleet","UID":"u","Version":"1"}`), true)
	f.Add([]byte("\x81\x00na"), []byte(`{"Name":"a","Namespace":"n","UID":"u","Version":"1"}`), true)
	f.Add([]byte("\x01n"), []byte(`{"Namespace":"n","UID":"u","Version":"1"}`), true)
	f.Fuzz(func(t *testing.T, key, record []byte, seal bool) {
		if seal {
			record = bolt.NewRecord(key, record)
		}
		o, damaged := bolt.FromRecord[*machine.Machine](key, record)
		if damaged != nil {
			require.Nil(t, o)
			require.NotEqual(t, bolt.DamageNone, damaged.Damage)
			require.NotEmpty(t, damaged.Error())
			return
		}
		require.NotEmpty(t, o.Name)
		again, record, same, err := bolt.Record(o.Clone())
		if errors.Is(err, store.ErrInvalid) { // a time that UTC moves into the year 10000
			return
		}
		require.NoError(t, err)
		require.Equal(t, key, again)
		require.Equal(t, o, same)
		read, damaged := bolt.FromRecord[*machine.Machine](again, record)
		require.Nil(t, damaged)
		require.Equal(t, o, read)
	})
}
