package driver_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

// inLines breaks a text into lines of base64, as mails and PEM files have it.
func inLines(text, end string) string {
	var all strings.Builder
	for len(text) > 64 {
		all.WriteString(text[:64] + end)
		text = text[64:]
	}
	return all.String() + text
}

func inJSON(text string) string {
	b, err := json.Marshal(map[string]string{"error": text})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func inXML(text string) string {
	var all strings.Builder
	if err := xml.EscapeText(&all, []byte(text)); err != nil {
		panic(err)
	}
	return all.String()
}

func lower(escaped string) string {
	all := []byte(escaped)
	for i := range all {
		if all[i] == '%' {
			copy(all[i:], strings.ToLower(string(all[i:i+3])))
		}
	}
	return string(all)
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// secretForms are the forms of docs/concepts/safety.md.
var secretForms = map[string]func(string) string{
	"as it is":               func(s string) string { return s },
	"percent-encoded, `%2F`": url.QueryEscape,
	"percent-encoded, `%2f`": func(s string) string { return lower(url.QueryEscape(s)) },
	"percent-encoded path":   url.PathEscape,
	"entities of HTML":       html.EscapeString,
	"entities of XML":        inXML,
	"quoted as in Go":        strconv.Quote,
	"quoted as in ASCII":     strconv.QuoteToASCII,
	"JSON":                   inJSON,
	"JSON in JSON":           func(s string) string { return inJSON(inJSON(s)) },
	"base64":                 base64Of,
	"base64 for URLs":        func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 of a longer text, such as `user:token`": func(s string) string { return base64Of("user:" + s + " and more") },
	"base64 behind other letters":                   func(s string) string { return "x" + base64Of(s) },
	"base64 in lines":                               func(s string) string { return inLines(base64Of(strings.Repeat("-", 50)+s), "\n") },
	"base64 in lines that were made one":            func(s string) string { return inLines(base64Of(strings.Repeat("-", 50)+s), " ") },
	"hexadecimal":                                   func(s string) string { return hex.EncodeToString([]byte(s)) },
	"hexadecimal, `2F`":                             func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"a list of bytes":                               func(s string) string { return fmt.Sprint([]byte(s)) },
}

// reported returns what Validate passes on of an error's message, if the secret has that value.
func reported(t require.TestingT, message, value string) string {
	secret := &machine.Secret{Data: map[string][]byte{"key": []byte(value)}}
	d := driver.Validate(answering(nothing, errors.New(message)), driver.ValidateOptions{})
	_, err := d.CreateMachine(context.Background(), &driver.CreateMachineRequest{Machine: aMachine, Class: aClass, Secret: secret})
	require.Error(t, err)
	return codes.Message(err)
}

// TestP59FormsOfSecrets: each form of the table in the docs is found, for a value of 8 bytes and for a
// long one, at each offset within a group of base64. The rest of the message stays.
// Invariants: P59
func TestP59FormsOfSecrets(t *testing.T) {
	page, err := os.ReadFile("../docs/concepts/safety.md")
	require.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(secretForms)) {
		require.True(t, strings.Contains(string(page), "| "+name+" |"), "docs/concepts/safety.md lacks the form %q", name)
		for _, value := range []string{"<p4/s€>", `s3cr+t & "q\u" %41 = ` + "line\nnext"} {
			for _, before := range []string{"", "1", "12", "123"} {
				got := reported(t, "denied ("+secretForms[name](before+value)+"): see the log", value)
				require.Contains(t, got, "[value of key]", "%s: %q", name, before)
				require.True(t, strings.HasPrefix(got, "denied (") && strings.HasSuffix(got, "): see the log"), got)
			}
		}
	}
}

// TestPartsInYAML: members of YAML and of settings are parts of a value, as those of JSON are, also of
// JSON that is a string in JSON.
// Invariants: P59
func TestPartsInYAML(t *testing.T) {
	for _, value := range []string{
		"discovery:\n  bootstrapToken:\n    token: abcdef.0123456789abcdef # for a day\n",
		"tokens:\n- 'abcdef.0123456789abcdef'\n- name: x\n",
		"- token: \"abcdef.0123456789abcdef\"\n",
		"A=b\nTOKEN=abcdef.0123456789abcdef\n",
		inJSON(inJSON(`{"token":"abcdef.0123456789abcdef"}`)),
	} {
		for _, form := range []string{"abcdef.0123456789abcdef", base64Of("node:abcdef.0123456789abcdef")} {
			got := reported(t, "no "+form, value)
			require.Contains(t, got, "[value of key]", "%q in %s", value, form)
			require.NotContains(t, got, form)
		}
	}
	require.Equal(t, "no short.word", reported(t, "no short.word", "token: short.word\n"))
}

// P59: a value in any of the forms, also one form in another, amid other text, is not passed on.
// Invariants: P59
func TestP59NoFormShowsASecret(t *testing.T) {
	names := slices.Sorted(maps.Keys(secretForms))
	words := rapid.SampledFrom([]string{"", "x", "token=", "Authorization: Basic ", "a b, ", "%", "&", "\\"})
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringN(8, 40, -1).Filter(func(s string) bool {
			return len(strings.TrimSpace(s)) == len(s) && !strings.ContainsFunc(s, notInXML)
		}).Draw(t, "value")
		message := value
		for range rapid.IntRange(0, 2).Draw(t, "wraps") {
			message = words.Draw(t, "before") + secretForms[rapid.SampledFrom(names).Draw(t, "form")](message) + words.Draw(t, "after")
		}
		require.Contains(t, reported(t, message, value), "[value of key]", "%q", message)
	})
}

// TestStrayEscapes: a value is found behind a character that reads as an escape with its first characters.
// Invariants: P59
func TestStrayEscapes(t *testing.T) {
	for message, value := range map[string]string{
		"no %AAAAAAA%3F!":               "AAAAAAA?",
		"no %41%41AAAAA%3F!":            "41AAAAA?",
		`no \nnnnnnnn\"!`:               "nnnnnnn\"",
		`no \\nvalue \"x\"!`:            "\nvalue \"x\"",
		`no \u0041value \"x\"!`:         "u0041value \"x\"",
		"no &lt;value &amp; more!":      "lt;value & more",
		"no %AbCdEfGh%2B" + "IjKlMnOp!": string(decoded64(t, "AbCdEfGh+IjKlMnO")),
	} {
		require.Regexp(t, `^no .*\[value of key\].*!$`, reported(t, message, value), "%q in %s", value, message)
	}
}

func decoded64(t *testing.T, text string) []byte {
	value, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return value
}

// notInXML reports whether XML can't carry a rune: its encoder writes U+FFFD in place of it.
func notInXML(r rune) bool {
	return r < ' ' && !strings.ContainsRune("\t\n\r", r) || r == '\ufffd' || r == '\ufffe' || r == '\uffff'
}

// TestSearchIsBounded: what is too long or in too many encodings to be searched is not passed on.
// Invariants: P59
func TestSearchIsBounded(t *testing.T) {
	long := strings.Repeat("x ", 100<<10) + "p4ssw0rd+long"
	var cut []string
	secret := &machine.Secret{Data: map[string][]byte{"key": []byte("p4ssw0rd+long")}}
	for _, message := range []string{long, strings.Repeat("%25", 40<<10) + "p4ssw0rd+long", strings.Repeat("QUJD", 30<<10) + "p4ssw0rd+long"} {
		_, err := ask(t.Context(), saying(errors.New(message), &cut), codes.CreateMachine, aMachine, aClass, secret)
		require.NotContains(t, err.Error(), "p4ssw0rd")
		require.NotContains(t, cut[len(cut)-1], "p4ssw0rd")
	}
}

// TestNamesShowNoSecret: a node name or an address with a value of the secret is left out, and
// reported without the value. A value that the machine's name shows is not secret.
// Invariants: P59
func TestNamesShowNoSecret(t *testing.T) {
	const value = "abcdef-0123456789abcdef"
	secret := &machine.Secret{Data: map[string][]byte{"token": []byte(value), "name": []byte(aMachine.Name), "short": []byte("worker-1")}}
	for name, one := range map[string]struct {
		answer, left driver.CreateMachineResponse
		fails        bool
	}{
		"node": {driver.CreateMachineResponse{ProviderID: "i", NodeName: "n-" + value}, driver.CreateMachineResponse{ProviderID: "i"}, true},
		"address": {
			driver.CreateMachineResponse{ProviderID: "i", NodeName: "n", Addresses: []machine.Address{{Type: "DNS", Value: base64Of(value)}, {Type: "IP", Value: "::1"}}},
			driver.CreateMachineResponse{ProviderID: "i", NodeName: "n", Addresses: []machine.Address{{Type: "IP", Value: "::1"}}}, false,
		},
		"a short word":       {driver.CreateMachineResponse{ProviderID: "i", NodeName: "worker-1"}, driver.CreateMachineResponse{ProviderID: "i", NodeName: "worker-1"}, false},
		"the machine's name": {driver.CreateMachineResponse{ProviderID: "i", NodeName: aMachine.Name}, driver.CreateMachineResponse{ProviderID: "i", NodeName: aMachine.Name}, false},
	} {
		var cut []string
		d := driver.Validate(answering(func(codes.Call) any { return &one.answer }, nil), driver.ValidateOptions{
			Cut: func(_ context.Context, _ driver.CallInfo, whole string) { cut = append(cut, whole) },
		})
		got, err := d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: aMachine, Class: aClass, Secret: secret})
		require.Equal(t, one.left, *got, name)
		require.Equal(t, one.fails, codes.Of(err) == codes.Internal, "%s: %v", name, err)
		require.NotContains(t, fmt.Sprint(err, cut), value)
		require.Equal(t, name == "node" || name == "address", len(cut) == 1, name)
	}
}

func BenchmarkSecretsTakenOut(b *testing.B) {
	value := strings.Repeat("  run: some command of a script --with flags\n", 400)
	message := strings.Repeat(`{"error":"no room for cGFzc3dvcmQgdG9rZW4 in zone a%2Fb"}`, 20)
	b.ReportAllocs()
	for b.Loop() {
		reported(b, message, value)
	}
}
