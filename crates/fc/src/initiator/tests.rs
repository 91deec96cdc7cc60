mod loss;
