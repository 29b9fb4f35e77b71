// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccounttoken_test

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/setpoint-io/setpoint/controllers/serviceaccounttoken"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller, with a key of its own. A real one has the file
// that the API server was given as --service-account-signing-key-file.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		fmt.Println(err)
		return
	}
	options := serviceaccounttoken.Defaults()
	options.PrivateKey = key
	tokens, err := serviceaccounttoken.New(mgr, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", tokens.Name(), mgr.Add(tokens) == nil)
	// Output: added serviceaccount-token-controller true
}
