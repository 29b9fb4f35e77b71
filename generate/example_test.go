// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/setpoint-io/setpoint/generate"
)

// What follows from the types of a package. Nothing is written.
func Example() {
	files, err := generate.Run(context.Background(), generate.Options{Patterns: []string{"./testdata/gadget"}, RoleName: "gadget-controller"})
	for _, f := range files {
		fmt.Println(filepath.Base(f.Path))
	}
	fmt.Println(err)
	// Output:
	// example.com_gadgets.yaml
	// role.yaml
	// zz_generated.deepcopy.go
	// <nil>
}
