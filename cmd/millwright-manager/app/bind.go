package app

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// rules are the policies that settings change.
type rules struct {
	machine    *machine.Policy
	set        *machineset.Policy
	deployment *deployment.Policy
	safety     *safety.Policy
	drain      *drain.Policy
	pool       *machinepool.Policy
}

func defaultRules() *rules {
	return &rules{
		machine: machine.DefaultPolicy(), set: controllers.DefaultSetPolicy(), deployment: controllers.DefaultDeploymentPolicy(),
		safety: safety.DefaultPolicy(), drain: drain.DefaultPolicy(), pool: machinepool.DefaultPolicy(),
	}
}

// named returns a policy by its name in the tags of settings, or nil.
func (r *rules) named(name string) any {
	switch name {
	case "machine":
		return r.machine
	case "set":
		return r.set
	case "deployment":
		return r.deployment
	case "safety":
		return r.safety
	case "drain":
		return r.drain
	case "pool":
		return r.pool
	}
	return nil
}

// fields returns the fields of policies that a setting's tag names, each by the name of its policy (see
// named) and its own.
func (r *rules) fields(tag string) ([]reflect.Value, error) {
	var found []reflect.Value
	for path := range strings.SplitSeq(tag, ",") {
		name, rest, _ := strings.Cut(path, ".")
		value := reflect.ValueOf(r.named(name))
		for field := range strings.SplitSeq(rest, ".") {
			if value = reflect.Indirect(value); value.Kind() != reflect.Struct {
				value = reflect.Value{}
				break
			}
			value = value.FieldByName(field)
		}
		if !value.IsValid() || !value.CanSet() {
			return nil, fmt.Errorf("there is no policy %s", path)
		}
		found = append(found, value)
	}
	return found, nil
}

// fillDefaults sets the defaults of settings that declare none: the values in the policies.
func (r *rules) fillDefaults(flags []*kong.Flag) error {
	for _, flag := range flags {
		tag := flag.Tag.Get("policy")
		if tag == "" || flag.HasDefault {
			continue
		}
		fields, err := r.fields(tag)
		if err != nil {
			return err
		}
		flag.HasDefault, flag.Default = true, flagText(fields[0].Interface())
	}
	return nil
}

// flagText returns a value in the syntax of a flag.
func flagText(value any) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, ",")
	case time.Duration:
		return shortDuration(v)
	default:
		return fmt.Sprint(v)
	}
}

// shortDuration returns a duration without its zero parts: 2h, not 2h0m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// apply sets the fields of the policies to the values of the settings. A setting of 0 means off, which is
// object.Off in a policy, where 0 means the default. check refuses it where a field can't be off.
// Fields whose default is 0 in the library get the value as it is.
func (r *rules) apply(flags []*kong.Flag) error {
	library := &rules{
		machine: machine.DefaultPolicy(), set: machineset.DefaultPolicy(), deployment: deployment.DefaultPolicy(),
		safety: safety.DefaultPolicy(), drain: drain.DefaultPolicy(), pool: machinepool.DefaultPolicy(),
	}
	for _, flag := range flags {
		tag := flag.Tag.Get("policy")
		if tag == "" {
			continue
		}
		fields, err := r.fields(tag)
		if err != nil {
			return err
		}
		defaults, err := library.fields(tag)
		if err != nil {
			return err
		}
		for i, field := range fields {
			if field.Type() != flag.Target.Type() {
				return fmt.Errorf("setting %s is no %s", flag.Name, field.Type())
			}
			field.Set(flag.Target)
			if field.CanInt() && field.IsZero() && !defaults[i].IsZero() {
				field.SetInt(object.Off)
			}
		}
	}
	r.deployment.UpdateLimit = cmp.Or(r.deployment.UpdateLimit, rollout.IntOrPercent{Value: 1})
	r.safety.CheckDown = min(r.safety.CheckDown, r.safety.CheckPeriod)
	return nil
}

// check returns the error of the first invalid policy. It names the setting instead of the field.
func (r *rules) check(flags []*kong.Flag) error {
	for _, policy := range []struct {
		name     string
		validate func() error
	}{
		{"machine", r.machine.Validate}, {"drain", r.drain.Validate}, {"set", r.set.Validate},
		{"deployment", r.deployment.Validate}, {"safety", r.safety.Validate}, {"pool", r.pool.Validate},
	} {
		if err := policy.validate(); err != nil {
			return asSetting(flags, policy.name, err)
		}
	}
	return nil
}

// asSetting turns an error about a policy's field into one about the setting of that field.
func asSetting(flags []*kong.Flag, policy string, err error) error {
	var bad *object.FieldError
	if !errors.As(err, &bad) {
		return err
	}
	name := settingOf(flags, policy, bad.Field)
	problem := strings.Replace(bad.Problem, ", or off", ", or 0", 1)
	if _, other, refers := strings.Cut(problem, " policy."); refers {
		problem = strings.TrimSuffix(problem, "policy."+other) + settingOf(flags, policy, "policy."+other)
	}
	return &problemOf{setting: name, problem: problem}
}

// settingOf returns the name of the setting for a field of a policy, or the field's name if there is
// none.
func settingOf(flags []*kong.Flag, policy, field string) string {
	want := policy + "." + strings.TrimPrefix(field, "policy.")
	for _, flag := range flags {
		for path := range strings.SplitSeq(flag.Tag.Get("policy"), ",") {
			if strings.EqualFold(path, want) {
				return flag.Name
			}
		}
	}
	return policy + " " + field
}

// decodeIntOrPercent reads "3" or "20%".
func decodeIntOrPercent(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("number or percentage", &text); err != nil {
		return err
	}
	v, err := rollout.Parse(text)
	if err != nil {
		return err
	}
	target.Set(reflect.ValueOf(v))
	return nil
}
