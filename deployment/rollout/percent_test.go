package rollout_test

import (
	"encoding/json"
	"math"
	"math/big"
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
		require.Less(t, len(err.Error()), 150, "the error quotes all of a long input")
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
		require.EqualValues(t, 9, got.Surge.Value, "a refused input has changed the value")
	}
}

// TestUnmarshalJSONRefusesRawText: UnmarshalJSON may be called directly, with input that is no JSON.
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

// TestCeilAndFloorOfEveryPercentage compares every percentage of small fleets, and of the largest one, with a slow
// computation: it counts up machine by machine until the next one would be too many.
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

func TestShares(t *testing.T) {
	const most = math.MaxInt32
	for _, c := range []struct {
		name  string
		total int64
		sizes []int32
		want  []int32
	}{
		{"no sets", 3, []int32{}, nil},
		{"nothing to share", 0, []int32{4, 2}, []int32{0, 0}},
		{"even", 4, []int32{5, 5}, []int32{2, 2}},
		{"in proportion", 6, []int32{10, 5, 15}, []int32{2, 1, 3}},
		{"leftover to the largest", 3, []int32{2, 7, 3}, []int32{0, 2, 1}},
		{"leftovers, one apiece", 2, []int32{1, 1, 1}, []int32{1, 1, 0}},
		{"all of it", 12, []int32{2, 7, 3}, []int32{2, 7, 3}},
		{"more than there is", 99, []int32{2, 7, 3}, []int32{2, 7, 3}},
		{"all but one", 2, []int32{1, 1, 1}, []int32{1, 1, 0}},
		{"an empty set gets none", 1, []int32{0, 1, 0}, []int32{0, 1, 0}},
		{"negative size", 2, []int32{-5, 2, 2}, []int32{0, 1, 1}},
		{"negative total", -2, []int32{2, 2}, []int32{0, 0}},
		{"largest numbers", 2*most - 1, []int32{most, most}, []int32{most, most - 1}},
		{"product beyond 64 bits", 5 * most, []int32{most, most, most, most, most, most}, []int32{
			1789569706, 1789569706, 1789569706, 1789569706, 1789569706, 1789569705,
		}},
		{"all sizes equal, many sets", 17, make20(1), append(make20(1)[:17], 0, 0, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, rollout.Shares(c.total, c.sizes, nil))
		})
	}
}

func make20(size int32) []int32 {
	sizes := make([]int32, 20)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}

// TestP9SharesSumExactly: the sum of the shares is exact; no share is above its size, or differs by more than one from
// the exact proportion; larger sets have no smaller shares; and the oracle computes the same.
// Invariants: P9
func TestP9SharesSumExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Int32Range(-1, 9), rapid.SampledFrom(extremes), rapid.Int32())
		sizes := rapid.SliceOfN(size, 0, 24).Draw(t, "sizes")
		clamped, sum := make([]int64, len(sizes)), int64(0)
		for i := range sizes {
			clamped[i] = max(int64(sizes[i]), 0)
			sum += clamped[i]
		}
		total := rapid.OneOf(rapid.Int64Range(-1, sum+1), rapid.Int64()).Draw(t, "total")
		shares := rollout.Shares(total, sizes, make([]int32, 2, 40))
		total = min(max(total, 0), sum)

		require.Len(t, shares, len(sizes))
		left := total
		for i, share := range shares {
			left -= int64(share)
			require.GreaterOrEqual(t, share, int32(0))
			require.LessOrEqual(t, int64(share), clamped[i])
			require.True(t, nearProportion(int64(share), total, clamped[i], sum), "share %d of %v", i, shares)
			for j := range shares {
				require.False(t, clamped[i] > clamped[j] && share < shares[j], "a larger set got less: %v", shares)
			}
		}
		require.Zero(t, left)
		for i, want := range oracleShares(total, clamped) {
			require.Equal(t, want, int64(shares[i]))
		}
	})
}

// nearProportion reports whether |share − total × size / sum| <= 1, multiplied by sum.
func nearProportion(share, total, size, sum int64) bool {
	exact := new(big.Int).Mul(big.NewInt(total), big.NewInt(size))
	difference := new(big.Int).Mul(big.NewInt(share), big.NewInt(sum))
	return difference.Sub(difference, exact).CmpAbs(big.NewInt(sum)) <= 0
}

func TestSharesKeepsBuffer(t *testing.T) {
	buffer := make([]int32, 0, 8)
	shares := rollout.Shares(3, []int32{2, 2}, buffer)
	require.Same(t, &buffer[:1][0], &shares[0])
}
