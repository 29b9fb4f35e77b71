// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// checkedText is a text of a form that its flag checks.
type checkedText struct {
	text, kind string
	check      func(string) error
}

// String implements pflag.Value.
func (c *checkedText) String() string { return c.text }

// Type implements pflag.Value.
func (c *checkedText) Type() string { return c.kind }

// ExplainsItself says that its errors do.
func (c *checkedText) ExplainsItself() {}

// Set implements pflag.Value.
func (c *checkedText) Set(text string) error {
	if err := c.check(text); err != nil {
		return err
	}
	c.text = text
	return nil
}

func quantity(text string) error {
	if _, err := resource.ParseQuantity(text); err != nil {
		return fmt.Errorf("want a number of bytes, such as 512Ki")
	}
	return nil
}

// levelsOfFiles checks a list of patterns of source files with levels.
// Source: k8s.io/component-base/logs/api/v1, VModuleConfigurationPflag.
func levelsOfFiles(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		pattern, level, _ := strings.Cut(item, "=")
		if _, err := strconv.ParseUint(level, 10, 31); item != "" && (pattern == "" || err != nil) {
			return fmt.Errorf("%q: want a pattern of files and a level, such as informer=4", item)
		}
	}
	return nil
}

// previousVersion checks the version whose hidden metrics are to be shown.
// Source: k8s.io/component-base/metrics/api/v1, Validate.
func previousVersion(text string) error {
	if want := fmt.Sprintf("1.%d", newestMinor-1); text != "" && text != want {
		return fmt.Errorf("want %s, the version before this one, or leave it out", want)
	}
	return nil
}
