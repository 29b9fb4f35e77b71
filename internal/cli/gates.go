// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// EachGate reads feature gates, such as A=true,B=false, and calls set with each until that
// fails. There may be nothing between two commas.
func EachGate(text string, set func(name string, on bool) error) error {
	for pair := range strings.SplitSeq(text, ",") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		name = strings.TrimSpace(name)
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if name == "" || err != nil {
			return fmt.Errorf("%q: want NAME=true or NAME=false", pair)
		}
		if err := set(name, on); err != nil {
			return err
		}
	}
	return nil
}
