// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"
	"time"
)

func TestValuesAreWhatTheirTextStates(t *testing.T) {
	for text, want := range map[string]map[time.Duration]int64{
		"200m":                     {0: 200, time.Hour: 200},
		" 2 ":                      {0: 2000},
		"-3":                       {0: -3000},
		"64Mi":                     {0: 64 << 20 * 1000},
		"100m..400m over 60s":      {-time.Second: 100, 0: 100, 20 * time.Second: 200, time.Minute: 400, time.Hour: 400},
		"400m..100m over 1m":       {0: 400, 20 * time.Second: 300, time.Minute: 100},
		"100m..400m every 2m":      {0: 100, 20 * time.Second: 200, time.Minute: 400, 100 * time.Second: 200, 2 * time.Minute: 100, 3 * time.Minute: 400},
		"1..3 over 10s shared":     {0: 1000, 5 * time.Second: 2000, 10 * time.Second: 3000},
		"1000000000000k":           {0: 1e18},
		"-1e15..1e15 over 1000h":   {0: -1e18, 1000 * time.Hour: 1e18},
		"1e-1..3e-1 every 100ms":   {25 * time.Millisecond: 200},
		"0..1 over 2562047h47m16s": {0: 0},
	} {
		v, err := ParseValue(text)
		if err != nil || !v.Exists() {
			t.Errorf("%q: %v, exists: %t", text, err, v.Exists())
		}
		if shared := strings.HasSuffix(text, "shared"); v.Shared() != shared {
			t.Errorf("%q: shared is %t", text, v.Shared())
		}
		for age, milli := range want {
			if got := v.At(age); got != milli {
				t.Errorf("%q after %s is %dm, want %dm", text, age, got, milli)
			}
		}
	}
	if v, err := ParseValue("none"); err != nil || v.Exists() {
		t.Errorf(`"none": %v, exists: %t`, err, v.Exists())
	}
}

func TestValuesThatMeanNothingAreRefusedWithWhatIsPossible(t *testing.T) {
	const grammar = `use "200m", "100m..400m over 60s" or "100m..400m every 2m", each of them also with " shared" after it, or "none"`
	for text, want := range map[string]string{
		"":                       `"" is not a value: ` + grammar,
		"shared":                 `"shared" is not a quantity such as "200m" or "64Mi"; ` + grammar,
		"much":                   `"much" is not a quantity`,
		"NaN":                    `"NaN" is not a quantity`,
		"1..2":                   `"1..2" is not a quantity`,
		"1 2":                    `"1 2" is not a value: ` + grammar,
		"1 over 60s":             `"1 over 60s" is not a value: ` + grammar,
		"1..2 for 60s":           `"1..2 for 60s" is not a value: ` + grammar,
		"1..x over 60s":          `"1..x over 60s" is not a value: "x" is not a quantity`,
		"..2 over 60s":           `"..2 over 60s" is not a value: "" is not a quantity`,
		"1..2 over 60":           `"60" is not a duration such as "60s"`,
		"1..2 every 0s":          `"0s" is not a duration`,
		"1..2 over -1s":          `"-1s" is not a duration`,
		"2e15":                   `"2e15" is not between -1e+15 and 1e+15`,
		"-1Ei":                   `"-1Ei" is not between`,
		"1 shared shared":        `"1 shared shared" is not a value`,
		"none shared":            `"none" is not a quantity`,
		"1..2 over 60s shared ?": `is not a value`,
	} {
		_, err := ParseValue(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

// FuzzParseValue holds that no text makes the parser or the arithmetic fail, and that a
// value stays between the two that its text names.
func FuzzParseValue(f *testing.F) {
	for _, text := range []string{"200m", "1..2 over 60s", "-1..64Mi every 2m shared", "none", "1e15", "0.0000001..1 over 1ns", "1Ei"} {
		f.Add(text, int64(time.Second))
	}
	f.Fuzz(func(t *testing.T, text string, age int64) {
		v, err := ParseValue(text)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a text")
			}
			return
		}
		least, most := v.from.MilliValue(), v.to.MilliValue()
		if least > most {
			least, most = most, least
		}
		if got := v.At(time.Duration(age)); got < least || got > most {
			t.Errorf("%q after %s is %dm, not between %dm and %dm", text, time.Duration(age), got, least, most)
		}
	})
}
