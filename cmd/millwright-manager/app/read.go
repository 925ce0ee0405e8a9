package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// prefix is the prefix of the environment variables for settings.
const prefix = "MILLWRIGHT"

// ErrSettings is matched by all errors about settings (errors.Is). A provider's errors about its own
// settings should wrap it.
var ErrSettings = errors.New("settings")

// problemOf is an error about one setting.
type problemOf struct {
	setting, problem string
	source           string // where the value comes from; empty: it is the default
}

// Error returns a text such as "machine-drain-timeout (from MILLWRIGHT_MACHINE_DRAIN_TIMEOUT): must
// be at least a second".
func (p *problemOf) Error() string {
	if p.source == "" {
		return p.setting + ": " + p.problem
	}
	return p.setting + " (from " + p.source + "): " + p.problem
}

// Is implements errors.Is.
func (p *problemOf) Is(target error) bool { return target == ErrSettings }

// bad returns an error about a setting. The source is added later: see sourced.
func bad(setting, problem string, args ...any) *problemOf {
	return &problemOf{setting: setting, problem: fmt.Sprintf(problem, args...)}
}

// reading reads the settings of a program, and holds them.
type reading struct {
	settings settings
	rules    *rules
	parser   *kong.Kong
	args     []string
	file     *file
	ended    bool // --help or --version was given
}

func newReading(p *Program, args []string, out io.Writer) (*reading, error) {
	r := &reading{rules: defaultRules(), args: args, file: &file{}}
	options := []kong.Option{
		kong.Name(p.name()), kong.Description(p.About), kong.Writers(out, out), kong.Exit(func(int) { r.ended = true }),
		kong.DefaultEnvars(prefix), kong.Resolvers(r.file), kong.Vars{"version": p.name() + " " + version()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.ValueMapper(&rollout.IntOrPercent{}, kong.MapperFunc(decodeIntOrPercent)),
		kong.PostBuild(func(k *kong.Kong) error { return r.rules.fillDefaults(k.Model.Flags) }), kong.PostBuild(checkDistinct),
	}
	if p.Settings != nil {
		if t := reflect.TypeOf(p.Settings); t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
			return nil, errors.New("the Settings of a Program must be a pointer to a struct")
		}
		options = append(options, kong.Embed(p.Settings))
	}
	var err error
	r.parser, err = kong.New(&r.settings, options...)
	return r, err
}

// checkDistinct returns an error if two settings have the same name.
func checkDistinct(k *kong.Kong) error {
	seen := map[string]bool{}
	for _, flag := range k.Model.Flags {
		if seen[flag.Name] {
			return fmt.Errorf("two settings are called %s", flag.Name)
		}
		seen[flag.Name] = true
	}
	return nil
}

// read reads the settings from flags, variables and the file, and checks them. Its errors wrap
// ErrSettings, except for mistakes in the tags of settings.
func (r *reading) read() error {
	if err := r.load(); err != nil {
		return r.sourced(err)
	}
	if _, err := r.parser.Parse(r.args); err != nil && !r.ended {
		return r.sourced(fromParser(err))
	}
	if r.ended {
		return nil
	}
	if err := r.rules.apply(r.parser.Model.Flags); err != nil {
		return err
	}
	err := r.settings.check()
	if err == nil {
		err = r.rules.check(r.parser.Model.Flags)
	}
	return r.sourced(err)
}

// load reads the file that the flag or variable of config names. It must be read first, because it has
// the values for settings without a flag or variable.
func (r *reading) load() error {
	trace, err := kong.Trace(r.parser, r.args)
	if err != nil || trace.Error != nil {
		return nil // Parse reports it
	}
	for _, element := range trace.Path {
		if element.Flag != nil && element.Flag.Name == "config" {
			r.file.name, _ = trace.FlagValue(element.Flag).(string)
			return r.file.read(r.parser.Model.Flags)
		}
	}
	r.file.name = os.Getenv(prefix + "_CONFIG")
	return r.file.read(r.parser.Model.Flags)
}

// These match parts of the parser's errors.
var (
	aboutFlag = regexp.MustCompile(`^--([a-z][a-z0-9-]*)(?:=\S+)?:? (.*)$`)
	missing   = regexp.MustCompile(`^missing flags: --([a-z][a-z0-9-]*)`)
	envar     = regexp.MustCompile(` \(from envar [A-Z0-9_]+=.*\)$`)
)

// fromParser turns an error of the parser into an error about a setting, if it is about one.
func fromParser(err error) error {
	text := envar.ReplaceAllString(oneLine(err), "")
	if m := aboutFlag.FindStringSubmatch(text); m != nil {
		if strings.Contains(m[2], "EOL") {
			return bad(m[1], "has no value")
		}
		return bad(m[1], "%s", m[2])
	}
	if m := missing.FindStringSubmatch(text); m != nil {
		return bad(m[1], "is needed")
	}
	return fmt.Errorf("%w: %s", ErrSettings, text)
}

// sourced adds to an error about a setting where the value comes from.
func (r *reading) sourced(err error) error {
	var about *problemOf
	if errors.As(err, &about) && about.source == "" {
		about.source = r.source(about.setting)
	}
	return err
}

// source returns where the value of a setting comes from: "a flag", a variable, the file's name, or ""
// for the default.
func (r *reading) source(setting string) string {
	for _, flag := range r.parser.Model.Flags {
		if flag.Name != setting {
			continue
		}
		if r.hasFlag(setting) {
			return "a flag"
		}
		for _, name := range flag.Tag.Envs {
			if _, set := os.LookupEnv(name); set {
				return name
			}
		}
		if _, set := r.file.values[setting]; set {
			return r.file.name
		}
	}
	return ""
}

// hasFlag reports whether a setting has a flag on the command line.
func (r *reading) hasFlag(setting string) bool {
	for _, arg := range r.args {
		name, _, _ := strings.Cut(arg, "=")
		if name == "--"+setting || name == "--no-"+setting {
			return true
		}
	}
	return false
}

// unknownVariables returns the environment variables that have the prefix and are no setting. They are
// only logged, because Kubernetes sets variables for services, which may have the prefix.
func (r *reading) unknownVariables() (names []string) {
	known := map[string]bool{}
	for _, flag := range r.parser.Model.Flags {
		for _, name := range flag.Tag.Envs {
			known[name] = true
		}
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, prefix+"_") && !known[name] && !ofService.MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

// ofService matches the variables that Kubernetes sets for services.
var ofService = regexp.MustCompile(`_SERVICE_(HOST|PORT(_.*)?)$|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_.*)?)?$`)

func (p *Program) name() string {
	if p.Name != "" {
		return p.Name
	}
	return filepath.Base(os.Args[0])
}

// oneLine returns an error's text without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
