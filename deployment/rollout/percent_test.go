package rollout_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]rollout.IntOrPercent{
		"0":           {},
		"3":           {Value: 3},
		"007":         {Value: 7},
		"2147483647":  {Value: math.MaxInt32},
		"0%":          {Percent: true},
		"20%":         {Value: 20, Percent: true},
		"250%":        {Value: 250, Percent: true},
		"2147483647%": {Value: math.MaxInt32, Percent: true},
	} {
		got, err := rollout.Parse(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
		require.Equal(t, got.Percent && got.Value > 100, got.Over100(), s)
	}
}

func TestParseRefuses(t *testing.T) {
	for s, want := range map[string]string{
		"":                         "is empty",
		"%":                        "is neither a whole number",
		"-":                        "is neither a whole number",
		"-%":                       "is neither a whole number",
		"--1":                      "is neither a whole number",
		"+1":                       "is neither a whole number",
		" 1":                       "is neither a whole number",
		"1 %":                      "is neither a whole number",
		"20%%":                     "is neither a whole number",
		"%20":                      "is neither a whole number",
		"2.5":                      "is neither a whole number",
		"1e3":                      "is neither a whole number",
		"0x10":                     "is neither a whole number",
		"٣":                        "is neither a whole number",
		"urgent":                   "is neither a whole number",
		"-1":                       "is negative",
		"-0":                       "is negative",
		"-20%":                     "is negative",
		"-99999999999":             "is negative",
		"2147483648":               "is larger than 2147483647",
		"2147483648%":              "is larger than 2147483647",
		"18446744073709551617":     "is larger than 2147483647",
		strings.Repeat("9", 1_000): "is larger than 2147483647",
	} {
		got, err := rollout.Parse(s)
		require.ErrorContains(t, err, want, s)
		require.Zero(t, got)
		require.Less(t, len(err.Error()), 150, "the error repeats a long input")
	}
}

func TestParseErrorSentences(t *testing.T) {
	_, err := rollout.Parse("20 %")
	require.EqualError(t, err, `rollout: "20 %" is neither a whole number of machines nor a percentage such as 20%`)
	_, err = rollout.Parse("-1")
	require.EqualError(t, err, `rollout: "-1" is negative`)
}

func TestIntOrPercentJSON(t *testing.T) {
	type settings struct {
		Surge rollout.IntOrPercent `json:"surge"`
	}
	for input, want := range map[string]rollout.IntOrPercent{
		`{"surge":3}`:          {Value: 3},
		`{"surge":"3"}`:        {Value: 3},
		`{"surge":"20%"}`:      {Value: 20, Percent: true},
		`{"surge":"2\u0030%"}`: {Value: 20, Percent: true},
		`{"surge":null}`:       {Value: 9},
		`{}`:                   {Value: 9},
	} {
		got := settings{Surge: rollout.IntOrPercent{Value: 9}}
		require.NoError(t, json.Unmarshal([]byte(input), &got), input)
		require.Equal(t, want, got.Surge, input)
	}
	for input, want := range map[string]string{
		`{"surge":-3}`:         "is negative",
		`{"surge":"-3"}`:       "is negative",
		`{"surge":2147483648}`: "is larger than 2147483647",
		`{"surge":2.0}`:        "is neither a whole number",
		`{"surge":1e1}`:        "is neither a whole number",
		`{"surge":""}`:         "is empty",
		`{"surge":true}`:       "is neither a JSON number",
		`{"surge":[1]}`:        "is neither a JSON number",
		`{"surge":{}}`:         "is neither a JSON number",
	} {
		got := settings{Surge: rollout.IntOrPercent{Value: 9}}
		require.ErrorContains(t, json.Unmarshal([]byte(input), &got), want, input)
		require.EqualValues(t, 9, got.Surge.Value, "changed by a refused input")
	}
}

// UnmarshalJSON may also be called with input that is no JSON.
func TestUnmarshalJSONRefusesRawText(t *testing.T) {
	var v rollout.IntOrPercent
	for _, input := range []string{"", "20%", `"20%`, "x", `"`} {
		require.Error(t, v.UnmarshalJSON([]byte(input)), input)
		require.Zero(t, v)
	}
}

func TestIntOrPercentRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rollout.IntOrPercent{Value: rapid.Int32().Draw(t, "value"), Percent: rapid.Bool().Draw(t, "percent")}
		encoded, err := json.Marshal(v)
		text, textErr := v.MarshalText()
		if v.Value < 0 {
			require.ErrorContains(t, err, "is negative")
			require.Error(t, textErr)
			return
		}
		require.NoError(t, err)
		require.NoError(t, textErr)
		require.Equal(t, v.String(), string(text))
		require.Equal(t, v.Percent, encoded[0] == '"')
		var fromJSON, fromText rollout.IntOrPercent
		require.NoError(t, json.Unmarshal(encoded, &fromJSON))
		require.NoError(t, fromText.UnmarshalText(text))
		require.Equal(t, v, fromJSON)
		require.Equal(t, v, fromText)
	})
}

// Every percentage of every small fleet, and of the largest one, is compared with whole-number
// division by hand: counting up machine by machine until the next one would be too many.
func TestCeilAndFloorOfEveryPercentage(t *testing.T) {
	for percent := range int32(151) {
		v := rollout.IntOrPercent{Value: percent, Percent: true}
		for of := range int32(130) {
			floor := int32(0)
			for (floor+1)*100 <= percent*of {
				floor++
			}
			ceil := floor
			if floor*100 < percent*of {
				ceil++
			}
			require.Equal(t, floor, v.Floor(of), "%s of %d", v, of)
			require.Equal(t, ceil, v.Ceil(of), "%s of %d", v, of)
		}
	}
}

func TestCeilAndFloorAtTheEnds(t *testing.T) {
	const most, least = math.MaxInt32, math.MinInt32
	for _, c := range []struct {
		v           rollout.IntOrPercent
		of          int32
		ceil, floor int32
	}{
		{rollout.IntOrPercent{Value: 5}, 2, 5, 5},
		{rollout.IntOrPercent{Value: 5}, -2, 5, 5},
		{rollout.IntOrPercent{Value: -5}, 2, 0, 0},
		{rollout.IntOrPercent{Value: least}, most, 0, 0},
		{rollout.IntOrPercent{Value: -50, Percent: true}, 10, 0, 0},
		{rollout.IntOrPercent{Value: 50, Percent: true}, -10, 0, 0},
		{rollout.IntOrPercent{Value: least, Percent: true}, least, 0, 0},
		{rollout.IntOrPercent{Value: most}, 1, most, most},
		{rollout.IntOrPercent{Value: most, Percent: true}, most, most, most},
		{rollout.IntOrPercent{Value: 101, Percent: true}, most, most, most},
		{rollout.IntOrPercent{Value: 100, Percent: true}, most, most, most},
		{rollout.IntOrPercent{Value: 99, Percent: true}, most, 2126008811, 2126008810},
		{rollout.IntOrPercent{Value: 1, Percent: true}, most, 21474837, 21474836},
		{rollout.IntOrPercent{Value: most, Percent: true}, 1, 21474837, 21474836},
	} {
		require.Equal(t, c.ceil, c.v.Ceil(c.of), "%+v of %d", c.v, c.of)
		require.Equal(t, c.floor, c.v.Floor(c.of), "%+v of %d", c.v, c.of)
	}
}
