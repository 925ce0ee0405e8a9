package mcm

import (
	"errors"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// vm has the fields of all answers about one machine.
type vm struct {
	ProviderID, NodeName, LastKnownState string
	Addresses                            []corev1.NodeAddress
}

// vmOf reads from an answer the fields that it has.
func vmOf[R any](r *R) *vm {
	if r == nil {
		return nil
	}
	out := &vm{}
	from, to := reflect.ValueOf(r).Elem(), reflect.ValueOf(out).Elem()
	for i := range to.NumField() {
		if field := from.FieldByName(to.Type().Field(i).Name); field.IsValid() {
			to.Field(i).Set(field)
		}
	}
	return out
}

func (v *vm) addresses() []machine.Address {
	var out []machine.Address
	for _, a := range v.Addresses {
		out = append(out, machine.Address{Type: string(a.Type), Value: a.Address})
	}
	return out
}

// coded is an error with the code that machine-controller-manager would find.
func coded(err error) error {
	if err == nil || codes.Of(err) != codes.Unknown {
		return err
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if code, ok := numbered(e); ok {
			return codes.Wrap(code, err, "")
		}
	}
	if code, ok := written(codes.Message(err)); ok {
		return codes.Wrap(code, err, "")
	}
	return err
}

// numbered returns the code of an error whose Code() is a number without a name.
func numbered(err error) (code codes.Code, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	method := reflect.ValueOf(err).MethodByName("Code")
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return codes.Unknown, false
	}
	switch result := method.Call(nil)[0]; {
	case result.CanUint() && result.Uint() <= uint64(codes.Uninitialized):
		return codes.Code(result.Uint()), true
	case result.CanInt() && result.Int() >= 0 && result.Int() <= int64(codes.Uninitialized):
		return codes.Code(result.Int()), true
	}
	return codes.Unknown, false
}

// written returns the code in the text of an error that has lost its type:
//
//	machine codes error: code = [NotFound] message = [there is no such VM]
func written(text string) (codes.Code, bool) {
	_, rest, _ := strings.Cut(text, "machine codes error: code = [")
	name, _, closed := strings.Cut(rest, "] message = [")
	if !closed {
		return codes.Unknown, false
	}
	return codes.Parse(name)
}
