// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client breaks no rule but that its only example is not checked.
package client

import (
	_ "net/http"

	_ "k8s.io/client-go/rest"
)
