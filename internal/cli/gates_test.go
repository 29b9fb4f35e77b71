// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"testing"
)

func TestGatesAreReadUntilOneIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"A=true":               "A=true ",
		" A = true ,B=false":   "A=true B=false ",
		"A=1,,B=f,":            "A=true B=false ",
		"A=true,B,C=true":      `A=true "B": want NAME=true or NAME=false`,
		"=true":                `"=true": want NAME=true or NAME=false`,
		"A=yes":                `"A=yes": want NAME=true or NAME=false`,
		"A=true,none=true,C=t": "A=true there is no gate none",
	} {
		got := ""
		err := EachGate(text, func(name string, on bool) error {
			if name == "none" {
				return fmt.Errorf("there is no gate %s", name)
			}
			got += fmt.Sprintf("%s=%t ", name, on)
			return nil
		})
		if err != nil {
			got += err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
