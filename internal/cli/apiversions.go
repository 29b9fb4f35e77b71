// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// APIVersions are the versions of APIs that a server serves or not, by name: "api/alpha" or
// "resource.k8s.io/v1alpha3". It is the value of a flag that may be given several times.
type APIVersions map[string]string

var _ pflag.Value = (*APIVersions)(nil)

// Set adds versions, such as A=true,B=false. A name alone is one that is served. There may be
// nothing between two commas.
// Source: k8s.io/component-base/cli/flag, ConfigurationMap, and
// k8s.io/apiserver/pkg/server/resourceconfig, getRuntimeConfigValue.
func (v *APIVersions) Set(text string) error {
	if *v == nil {
		*v = APIVersions{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if value == "" {
			value = "true"
		}
		if _, err := strconv.ParseBool(value); name == "" || err != nil {
			return fmt.Errorf("%q: want NAME, NAME=true or NAME=false", pair)
		}
		(*v)[name] = value
	}
	return nil
}

// String returns the versions in order, as Set reads them.
func (v *APIVersions) String() string {
	pairs := make([]string, 0, len(*v))
	for _, name := range slices.Sorted(maps.Keys(*v)) {
		pairs = append(pairs, name+"="+(*v)[name])
	}
	return strings.Join(pairs, ",")
}

// Type describes the value in messages of the flags' parser.
func (v *APIVersions) Type() string { return "versions" }
