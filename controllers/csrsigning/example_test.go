// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/csrsigning"
	"github.com/setpoint-io/setpoint/manager"
)

// An authority that cannot be read is an error before anything connects.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	authority := csrsigning.Files("no-such-ca.crt", "no-such-ca.key")
	options := csrsigning.Defaults()
	options.Authorities = csrsigning.ForAll(authority)
	_, err = csrsigning.New(mgr, options)
	fmt.Println(err)
	// Output: making certificatesigningrequest-signing-controller: for signer kubernetes.io/kube-apiserver-client: reading the certificate authority: open no-such-ca.crt: no such file or directory
}
