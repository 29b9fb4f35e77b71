// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	_ "net/url"

	_ "k8s.io/client-go/tools/leaderelection"
	_ "k8s.io/client-go/util/workqueue"
)

func hidden() (int, error) {
	_, err := http.Get("http://localhost")
	return http.StatusOK, err
}
