package right

import (
	"flag"
	format "fmt"
	. "os"
	"os/signal"

	"k8s.io/client-go/rest"
	_ "example.org/bad/righttest"
)

func decide() {
	flag.Parse()
	signal.Ignore()
	rest.InClusterConfig()
	format.Println(Args)
	println("bye")
	format.Errorf("harmless")
}
