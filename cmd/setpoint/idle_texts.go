// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

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

// atMostTwo checks networks of Services: one of each family.
func atMostTwo(text string) error {
	if strings.Count(text, ",") > 1 {
		return errors.New("want two networks at most, with a comma between them")
	}
	return nil
}
