# ActiveMQ, a second peer for STOMP and one more for MQTT 3.1.1, over TCP. Sourced by `with`.
# The user alice has the password secret; anonymous clients are allowed. A message that a NACK refuses goes to
# ActiveMQ.DLQ if it was sent with `persistent:true`.
# shellcheck shell=bash disable=SC2034
activemq_large=1
activemq_home=/usr/share/activemq

activemq_install() {
    [ -e "$activemq_home/bin/activemq.jar" ] && command -v java > /dev/null && [ -n "$(activemq_mqtt)" ] && return 0
    apt_install activemq default-jre-headless libmqtt-client-java
}

# The Java class path of the MQTT codec, which ActiveMQ's package leaves out.
activemq_mqtt() {
    local jar found=
    for jar in mqtt-client hawtdispatch hawtdispatch-transport hawtbuf; do
        [ ! -e "/usr/share/java/$jar.jar" ] || found+=:/usr/share/java/$jar.jar
    done
    case $found in *mqtt-client*) echo "$found" ;; esac
}

activemq_start() {
    local folder=$1 base
    mkdir "$folder/tmp"
    for base in $(candidate_ports 2); do
        cat > "$folder/activemq.xml" << CONF
<beans xmlns="http://www.springframework.org/schema/beans" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans.xsd
    http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" useJmx="false" persistent="false" brokerName="waybill"
      dataDirectory="$folder/data" schedulerSupport="false">
    <plugins>
      <simpleAuthenticationPlugin anonymousAccessAllowed="true">
        <users><authenticationUser username="alice" password="secret" groups="users"/></users>
      </simpleAuthenticationPlugin>
    </plugins>
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp://127.0.0.1:$base"/>
      <transportConnector name="mqtt" uri="mqtt://127.0.0.1:$((base + 1))"/>
    </transportConnectors>
  </broker>
</beans>
CONF
        java -Xms32m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true \
            "-Djava.io.tmpdir=$folder/tmp" "-Dactivemq.home=$activemq_home" "-Dactivemq.base=$folder" \
            "-Dactivemq.conf=$folder" "-Dactivemq.data=$folder/data" "-Dactivemq.classpath=$folder$(activemq_mqtt)" \
            --add-opens java.base/java.lang=ALL-UNNAMED --add-opens java.base/java.util=ALL-UNNAMED \
            --add-opens java.base/java.net=ALL-UNNAMED \
            -jar "$activemq_home/bin/activemq.jar" start "xbean:file:$folder/activemq.xml" > "$folder/activemq.log" 2>&1 &
        echo $! > "$folder/activemq.pid"
        if answers_in 60 $! stomp_round_trip "$base" alice secret &&
            answers_in 60 $! mqtt_round_trip $((base + 1)); then
            {
                echo "export WAYBILL_ACTIVEMQ_STOMP_PORT=$base"
                echo "export WAYBILL_ACTIVEMQ_MQTT_PORT=$((base + 1))"
            } > "$folder/env"
            return 0
        fi
        stop_listed "$folder/activemq.pid"
    done
    did_not_start activemq "$folder/activemq.log"
}
